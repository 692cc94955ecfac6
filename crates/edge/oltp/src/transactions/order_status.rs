//! Order-Status ([TPC-C 5.11], clause 2.6.2).

use super::customer::{middle, missing};
use crate::call::{bare, call, keyed};
use crate::done::TransactionDone;
use crate::fault::Fault;
use crate::input::{OrderStatus, Who};
use crate::session::Session;
use crate::statement::One;
use crate::value::Param;

/// Two or three exchanges.
pub async fn perform(session: &mut Session, input: &OrderStatus) -> Result<TransactionDone, Fault> {
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
