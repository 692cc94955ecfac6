//! Delivery ([TPC-C 5.11], clause 2.7.4).

use crate::call::{Call, bare, call, keyed, of_lines};
use crate::done::TransactionDone;
use crate::draws::DISTRICTS;
use crate::fault::Fault;
use crate::input::Delivery;
use crate::session::Session;
use crate::statement::{OfLines, One};
use crate::value::{Param, Row, Value};

/// Statements for each order: delete, whose, carry, lines, sum.
const EACH: usize = 5;

/// Three exchanges for all ten districts: which orders, what they are, whose account.
pub async fn perform(session: &mut Session, input: Delivery) -> Result<TransactionDone, Fault> {
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
/// [`DECIMAL`](crate::value::DECIMAL).
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
