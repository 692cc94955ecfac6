//! The five transactions ([TPC-C 5.11], clauses 2.4 to 2.8), in as few exchanges with the server as what each needs to know
//! allows.

use crate::draws::DISTRICTS;
use crate::error::{Fault, FaultKind};
use crate::input::{Delivery, Input, Line, NO_ITEM, NewOrder, OrderStatus, Payment, StockLevel, Who};
use crate::session::Session;
use crate::statement::{
    CENT, Call, OfLines, One, Param, Row, Value, bare, call, decimal_text, keyed, of_lines,
};
use crate::tally::TransactionDone;

/// Runs a transaction to its end. After a fault it is to be rolled back.
///
/// # Errors
/// The server's fault.
pub async fn perform(session: &mut Session, input: &Input) -> Result<TransactionDone, Fault> {
    match input {
        Input::NewOrder(input) => perform_new_order(session, input).await,
        Input::Payment(input) => perform_payment(session, input).await,
        Input::OrderStatus(input) => perform_order_status(session, input).await,
        Input::Delivery(input) => perform_delivery(session, *input).await,
        Input::StockLevel(input) => perform_stock_level(session, *input).await,
    }
}

/// The one in the middle of customers of one last name, who are ordered by their first names.
fn middle(customers: &[Row]) -> Result<u32, Fault> {
    let place = customers.len().div_ceil(2).saturating_sub(1);
    let found = customers.get(place).and_then(|row| row.first());
    found.map(|number| number.key()).ok_or_else(|| missing("a customer of that last name"))
}

/// A fault for what must be there.
fn missing(what: &str) -> Fault {
    Fault::new(FaultKind::Other, format!("the database lacks {what}: populate it again"))
}

/// Statements for each order: delete, whose, carry, lines, sum.
const EACH: usize = 5;

/// Three exchanges for all ten districts: which orders, what they are, whose account.
async fn perform_delivery(session: &mut Session, input: Delivery) -> Result<TransactionDone, Fault> {
    let Delivery { warehouse, carrier } = input;
    let searches = (1..=DISTRICTS).map(|district| keyed(One::OldestNewOrder, [warehouse, district]));
    let calls: Vec<Call<'_>> = [bare(One::Begin)].into_iter().chain(searches).collect();
    let found = session.run(&calls).await?;
    let mut orders = Vec::new();
    for (district, rows) in (1..).zip(found.iter().skip(1)) {
        let order = match number(rows) {
            // Another Delivery has taken the order while this one waited for it: the next is the oldest now.
            None => {
                number(&session.run(&[keyed(One::OldestNewOrder, [warehouse, district])]).await?.concat())
            }
            found => found,
        };
        orders.extend(order.map(|order| [warehouse, district, order]));
    }
    let known = if session.answers_one_by_one() {
        delivered_together(session, &orders, carrier).await?
    } else {
        delivered_each(session, &orders, carrier).await?
    };
    let mut calls: Vec<Call<'_>> = Vec::with_capacity(orders.len() + 1);
    for ([warehouse, district, _], (customer, amount)) in orders.iter().zip(known) {
        let keys = [*warehouse, *district, customer].map(Param::from);
        calls.push(call(One::DeliverCustomer, [Param::Decimal(amount)].into_iter().chain(keys)));
    }
    calls.push(bare(One::Commit));
    session.run(&calls).await?;
    let delivered = u32::try_from(orders.len()).unwrap_or(0);
    Ok(TransactionDone { orders: delivered, skipped: DISTRICTS - delivered, ..TransactionDone::default() })
}

/// Delivers each order by statements of its own, all sent at once. Returns of each whose it is and what its lines cost, in parts of
/// [`DECIMAL`](crate::statement::DECIMAL).
async fn delivered_each(
    session: &mut Session,
    orders: &[[u32; 3]],
    carrier: u32,
) -> Result<Vec<(u32, i64)>, Fault> {
    let calls: Vec<Call<'_>> = orders.iter().flat_map(|order| deliver(*order, carrier)).collect();
    let known = session.run(&calls).await?;
    let of_order = |answers: &[Vec<Row>]| {
        let of = |place: usize| answers.get(place).and_then(|rows| rows.first()).and_then(|row| row.first());
        (of(1).map_or(0, Value::key), of(4).map_or(0, Value::decimal))
    };
    Ok(known.chunks(EACH).map(of_order).collect())
}

/// The same by statements for all orders, of which each takes an exchange.
async fn delivered_together(
    session: &mut Session,
    orders: &[[u32; 3]],
    carrier: u32,
) -> Result<Vec<(u32, i64)>, Fault> {
    if orders.is_empty() {
        return Ok(Vec::new());
    }
    let keys = || orders.iter().flatten().map(|key| Param::from(*key));
    let of = |what: OfLines| of_lines(what, orders.len(), keys().collect());
    let carry = [Param::from(carrier)].into_iter().chain(keys()).collect();
    let calls = [
        of(OfLines::DeleteNewOrders),
        of(OfLines::CustomersOfOrders),
        of_lines(OfLines::CarryOrders, orders.len(), carry),
        of(OfLines::DeliverOrders),
        of(OfLines::SumsOfOrders),
    ];
    let known = session.run(&calls).await?;
    let of_district = |place: usize, district: u32| {
        let rows = known.get(place)?;
        rows.iter().find(|row| row.first().is_some_and(|id| id.key() == district))?.get(1)
    };
    let of_order = |[_, district, _]: &[u32; 3]| {
        let customer = of_district(1, *district).map_or(0, Value::key);
        (customer, of_district(4, *district).map_or(0, Value::decimal))
    };
    Ok(orders.iter().map(of_order).collect())
}

fn number(rows: &[Row]) -> Option<u32> {
    rows.first().and_then(|row| row.first()).map(Value::key)
}

fn deliver(order: [u32; 3], carrier: u32) -> [Call<'static>; EACH] {
    let [warehouse, district, number] = order;
    [
        keyed(One::DeleteNewOrder, order),
        keyed(One::CustomerOfOrder, order),
        keyed(One::CarryOrder, [carrier, warehouse, district, number]),
        keyed(One::DeliverLines, order),
        keyed(One::SumOfLines, order),
    ]
}

/// A line with what the database says of it.
struct Priced {
    line: Line,
    price: i64,
    stock: i64,
    district_info: String,
}

/// Two exchanges: what is to be known, and what is to be written.
async fn perform_new_order(session: &mut Session, input: &NewOrder) -> Result<TransactionDone, Fault> {
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
            let quantity = stock.get(2).map_or(0, crate::statement::Value::int);
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

/// Two or three exchanges.
async fn perform_order_status(session: &mut Session, input: &OrderStatus) -> Result<TransactionDone, Fault> {
    let OrderStatus { warehouse, district, .. } = *input;
    let of_customer = |customer| {
        let keys = [warehouse, district, customer];
        [keyed(One::CustomerStatus, keys), keyed(One::LastOrder, keys)]
    };
    let mut known = match &input.customer {
        Who::Number(customer) => {
            let [status, order] = of_customer(*customer);
            session.run(&[bare(One::Begin), status, order]).await?
        }
        Who::Name(name) => {
            let search = call(One::CustomersOfName, [warehouse.into(), district.into(), Param::Text(name)]);
            let found = session.run(&[bare(One::Begin), search]).await?.pop().unwrap_or_default();
            session.run(&of_customer(middle(&found)?)).await?
        }
    };
    let order = known.pop().unwrap_or_default();
    let order = order.first().and_then(|row| row.first()).ok_or_else(|| missing("an order of a customer"))?;
    session.run(&[keyed(One::LinesOfOrder, [warehouse, district, order.key()]), bare(One::Commit)]).await?;
    Ok(TransactionDone::default())
}

/// Characters of `C_DATA`.
const MOST_DATA: usize = 500;

/// Two to four exchanges: a last name is looked up before the customer is read, and data of bad credit before they are written.
async fn perform_payment(session: &mut Session, input: &Payment) -> Result<TransactionDone, Fault> {
    let Payment { warehouse, district, customer_warehouse, customer_district, .. } = *input;
    let amount = i64::from(input.cents) * CENT;
    let pay = |one, keys: &[u32]| {
        call(one, [Param::Decimal(amount)].into_iter().chain(keys.iter().map(|key| Param::from(*key))))
    };
    let mut calls = vec![
        bare(One::Begin),
        pay(One::PayDistrict, &[warehouse, district]),
        keyed(One::District, [warehouse, district]),
        pay(One::PayWarehouse, &[warehouse]),
        keyed(One::Warehouse, [warehouse]),
    ];
    let reading =
        |customer| keyed(One::CustomerForPayment, [customer_warehouse, customer_district, customer]);
    calls.push(match &input.customer {
        Who::Number(customer) => reading(*customer),
        Who::Name(name) => call(
            One::CustomersOfName,
            [customer_warehouse.into(), customer_district.into(), Param::Text(name)],
        ),
    });
    let mut known = session.run(&calls).await?;
    let found = known.pop().unwrap_or_default();
    let (customer, found) = match &input.customer {
        Who::Number(customer) => (*customer, found),
        Who::Name(_) => {
            let customer = middle(&found)?;
            (customer, session.run(&[reading(customer)]).await?.pop().unwrap_or_default())
        }
    };
    let name =
        |rows: &[Vec<Value>]| rows.first().and_then(|row| row.get(5)).map_or("", Value::text).to_owned();
    let names = [known.get(4), known.get(2)].map(|rows| rows.map(|rows| name(rows)).unwrap_or_default());
    let credit = found.first().and_then(|row| row.get(9)).ok_or_else(|| missing("a customer"))?;
    let keys = [customer_warehouse, customer_district, customer];
    let data = if credit.text() == "BC" {
        let rows = session.run(&[keyed(One::CustomerData, keys)]).await?;
        let before = rows.first().and_then(|rows| rows.first()).and_then(|row| row.first());
        Some(data_after(before.map_or("", Value::text), input, customer))
    } else {
        None
    };
    let history = format!("{}    {}", names[0], names[1]);
    let calls = [
        pay_customer(amount, data.as_deref(), keys),
        insert_history(input, customer, &history),
        bare(One::Commit),
    ];
    session.run(&calls).await?;
    Ok(TransactionDone::default())
}

fn pay_customer(amount: i64, data: Option<&str>, keys: [u32; 3]) -> Call<'_> {
    let one = if data.is_some() { One::PayCustomerWithData } else { One::PayCustomer };
    let amounts = [Param::Decimal(amount); 2].into_iter();
    call(one, amounts.chain(data.map(Param::Text)).chain(keys.map(Param::from)))
}

fn insert_history<'a>(input: &Payment, customer: u32, data: &'a str) -> Call<'a> {
    let Payment { warehouse, district, customer_warehouse, customer_district, .. } = *input;
    let keys = [customer_district, customer_warehouse, customer, district, warehouse].map(Param::from);
    let rest = [Param::Decimal(i64::from(input.cents) * CENT), Param::Text(data)];
    call(One::InsertHistory, keys.into_iter().chain(rest))
}

/// `C_DATA` of a customer of bad credit: the payment stands before what was there.
fn data_after(before: &str, input: &Payment, customer: u32) -> String {
    let Payment { warehouse, district, customer_warehouse, customer_district, .. } = *input;
    let amount = decimal_text(i64::from(input.cents) * CENT);
    let mut data = format!(
        "| {customer:4} {customer_district:2} {customer_warehouse:4} {district:2} {warehouse:4} ${amount:>7} {before}"
    );
    data.truncate(MOST_DATA);
    data
}

/// Orders whose items are looked at.
const RECENT: u32 = 20;

/// Two exchanges.
async fn perform_stock_level(session: &mut Session, input: StockLevel) -> Result<TransactionDone, Fault> {
    let StockLevel { warehouse, district, threshold } = input;
    let known =
        session.run(&[bare(One::Begin), keyed(One::NextOrder, [warehouse, district])]).await?.concat();
    let next = known.first().and_then(|row| row.first()).ok_or_else(|| missing("a district"))?.key();
    let first = next.saturating_sub(RECENT);
    let short = keyed(One::ShortItems, [warehouse, district, next, first, warehouse, threshold]);
    session.run(&[short, bare(One::Commit)]).await?;
    Ok(TransactionDone::default())
}

#[cfg(test)]
#[path = "transactions_tests.rs"]
mod transactions_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Value;

    #[test]
    fn the_middle_is_rounded_up() {
        let rows = |count: i64| (1..=count).map(|number| vec![Value::Int(number)]).collect::<Vec<Row>>();
        assert_eq!([1, 2, 3, 4].map(|count| middle(&rows(count)).unwrap()), [1, 1, 2, 2]);
        assert!(middle(&[]).is_err());
    }

    #[test]
    fn stock_is_filled_up_before_it_runs_out() {
        assert_eq!(
            [(50, 5), (15, 5), (15, 6), (10, 10)].map(|(have, sold)| stock_after(have, sold)),
            [45, 10, 100, 91]
        );
    }

    #[test]
    fn data_of_bad_credit_grow_at_their_begin_and_are_cut_at_their_end() {
        let input = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: Who::Number(5),
            cents: 123_456,
        };
        let data = data_after(&"x".repeat(500), &input, 5);
        assert!(data.starts_with("|    5  4    3  2    1 $1234.56 xxx"), "{data}");
        assert_eq!(data.len(), 500);
    }
}
