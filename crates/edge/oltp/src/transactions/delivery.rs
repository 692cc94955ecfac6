//! Delivery ([TPC-C 5.11], clause 2.7.4).

use crate::call::{Call, bare, call, keyed};
use crate::done::Done;
use crate::draws::DISTRICTS;
use crate::fault::Fault;
use crate::input::Delivery;
use crate::session::Session;
use crate::statement::One;
use crate::value::{Param, Row, Value};

/// Statements for each order: delete, whose, carry, lines, sum.
const EACH: usize = 5;

/// Three exchanges for all ten districts: which orders, what they are, whose account.
pub async fn perform(session: &mut Session, input: Delivery) -> Result<Done, Fault> {
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
    let calls: Vec<Call<'_>> = orders.iter().flat_map(|order| deliver(*order, carrier)).collect();
    let known = session.run(&calls).await?;
    let mut calls: Vec<Call<'_>> = Vec::with_capacity(orders.len() + 1);
    for ([warehouse, district, _], answers) in orders.iter().zip(known.chunks(EACH)) {
        let of = |place: usize| answers.get(place).and_then(|rows| rows.first()).and_then(|row| row.first());
        let (customer, amount) = (of(1).map_or(0, Value::key), of(4).map_or(0, Value::decimal));
        let keys = [*warehouse, *district, customer].map(Param::from);
        calls.push(call(One::DeliverCustomer, [Param::Decimal(amount)].into_iter().chain(keys)));
    }
    calls.push(bare(One::Commit));
    session.run(&calls).await?;
    let delivered = u32::try_from(orders.len()).unwrap_or(0);
    Ok(Done { orders: delivered, skipped: DISTRICTS - delivered, ..Done::default() })
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
