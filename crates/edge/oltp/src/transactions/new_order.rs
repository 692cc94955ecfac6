//! New-Order ([TPC-C 5.11], clause 2.4.2).

use super::customer::missing;
use crate::call::{Call, bare, call, keyed, of_lines};
use crate::done::TransactionDone;
use crate::fault::Fault;
use crate::input::{Line, NO_ITEM, NewOrder};
use crate::session::Session;
use crate::statement::{OfLines, One};
use crate::value::{Param, Row};

/// A line with what the database says of it.
struct Priced {
    line: Line,
    price: i64,
    stock: i64,
    district_info: String,
}

/// Two exchanges: what is to be known, and what is to be written.
pub async fn perform(session: &mut Session, input: &NewOrder) -> Result<TransactionDone, Fault> {
    let NewOrder { warehouse, district, customer, lines } = input;
    let items = lines.iter().map(|line| Param::from(line.item)).collect();
    let stocks = lines.iter().flat_map(|line| [line.supply, line.item]).map(Param::from).collect();
    let known = session
        .run(&[
            bare(One::Begin),
            keyed(One::CustomerAndTax, [*warehouse, *district, *customer]),
            keyed(One::DistrictForOrder, [*district, *warehouse]),
            of_lines(OfLines::Items, lines.len(), items),
            of_lines(OfLines::Stock, lines.len(), stocks),
        ])
        .await?;
    let [_, _, district_row, items, stocks] = known.as_slice() else { return Err(missing("an answer")) };
    let order = district_row.first().and_then(|row| row.first()).map(|next| next.key());
    let order = order.ok_or_else(|| missing("a district"))?;
    let priced = priced(lines, *district, items, stocks)?;
    let rolled_back = priced.len() < lines.len();
    let mut calls = vec![
        keyed(One::TakeOrderNumber, [order + 1, *district, *warehouse]),
        insert_order(input, order),
        keyed(One::InsertNewOrder, [order, *district, *warehouse]),
    ];
    if session.answers_one_by_one() {
        calls.push(take_from_stock(&priced, *warehouse));
    } else {
        calls.extend(priced.iter().map(|priced| update_stock(priced, *warehouse)));
    }
    calls.push(insert_lines(&priced, [order, *district, *warehouse]));
    calls.push(bare(if rolled_back { One::Rollback } else { One::Commit }));
    session.run(&calls).await?;
    Ok(TransactionDone { rolled_back, ..TransactionDone::default() })
}

/// The lines whose items there are; all others of an order must be.
fn priced(lines: &[Line], district: u32, items: &[Row], stocks: &[Row]) -> Result<Vec<Priced>, Fault> {
    let of_items = lines.iter().filter(|line| line.item != NO_ITEM);
    of_items
        .map(|line| {
            let item = items.iter().find(|row| row.get(3).is_some_and(|id| id.key() == line.item));
            let stock = stocks.iter().find(|row| row.first().is_some_and(|id| id.key() == line.item));
            let price = item.and_then(|row| row.first()).ok_or_else(|| missing("an item"))?.decimal();
            let stock = stock.ok_or_else(|| missing("stock of an item"))?;
            let info = stock.get(3 + district as usize).map(|info| info.text().to_owned());
            let quantity = stock.get(2).map_or(0, crate::value::Value::int);
            Ok(Priced {
                line: *line,
                price,
                stock: stock_after(quantity, line.quantity),
                district_info: info.unwrap_or_default(),
            })
        })
        .collect()
}

/// What is left in stock (clause 2.4.2.2): where it would be fewer than ten, 91 come in.
fn stock_after(quantity: i64, ordered: u32) -> i64 {
    let left = quantity - i64::from(ordered);
    if left >= 10 { left } else { left + 91 }
}

fn insert_order(input: &NewOrder, order: u32) -> Call<'static> {
    let is_local = input.lines.iter().all(|line| line.supply == input.warehouse);
    let lines = u32::try_from(input.lines.len()).unwrap_or(u32::MAX);
    keyed(
        One::InsertOrder,
        [order, input.district, input.warehouse, input.customer, lines, u32::from(is_local)],
    )
}

fn update_stock(priced: &Priced, warehouse: u32) -> Call<'static> {
    let Line { item, supply, quantity } = priced.line;
    let is_remote = u32::from(supply != warehouse);
    call(
        One::UpdateStock,
        [Param::Int(priced.stock), quantity.into(), is_remote.into(), item.into(), supply.into()],
    )
}

/// The same of all lines, whose items are different ones.
fn take_from_stock(priced: &[Priced], warehouse: u32) -> Call<'static> {
    let mut params = Vec::with_capacity(8 * priced.len());
    let of: [fn(&Priced, u32) -> Param<'static>; 3] = [
        |priced, _| Param::Int(priced.stock),
        |priced, _| priced.line.quantity.into(),
        |priced, warehouse| u32::from(priced.line.supply != warehouse).into(),
    ];
    for value in of {
        params.extend(priced.iter().flat_map(|one| [one.line.item.into(), value(one, warehouse)]));
    }
    params.extend(priced.iter().flat_map(|one| [one.line.supply, one.line.item].map(Param::from)));
    of_lines(OfLines::Take, priced.len(), params)
}

fn insert_lines(priced: &[Priced], [order, district, warehouse]: [u32; 3]) -> Call<'_> {
    let params = (1_u32..).zip(priced).flat_map(|(number, priced)| {
        let Line { item, supply, quantity } = priced.line;
        let keys = [order, district, warehouse, number, item, supply, quantity].map(Param::from);
        let amount = Param::Decimal(priced.price * i64::from(quantity));
        keys.into_iter().chain([amount, Param::Text(&priced.district_info)])
    });
    of_lines(OfLines::Insert, priced.len(), params.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_before_it_runs_out() {
        assert_eq!(
            [(50, 5), (15, 5), (15, 6), (10, 10)].map(|(have, sold)| stock_after(have, sold)),
            [45, 10, 100, 91]
        );
    }
}
