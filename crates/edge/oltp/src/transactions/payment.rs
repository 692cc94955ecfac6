//! Payment ([TPC-C 5.11], clause 2.5.2).

use super::customer::{middle, missing};
use crate::call::{Call, bare, call, keyed};
use crate::done::TransactionDone;
use crate::fault::Fault;
use crate::input::{Payment, Who};
use crate::session::Session;
use crate::statement::One;
use crate::value::{CENT, Param, Value, decimal_text};

/// Characters of `C_DATA`.
const MOST_DATA: usize = 500;

/// Two to four exchanges: a last name is looked up before the customer is read, and data of bad credit before they are written.
pub async fn perform(session: &mut Session, input: &Payment) -> Result<TransactionDone, Fault> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
