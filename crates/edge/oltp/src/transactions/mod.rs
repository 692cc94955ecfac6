//! The five transactions ([TPC-C 5.11], clauses 2.4 to 2.8), in as few exchanges with the server as what each needs to know
//! allows.

mod customer;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;
#[cfg(test)]
mod tests;

use crate::done::TransactionDone;
use crate::fault::Fault;
use crate::input::Input;
use crate::session::Session;

/// Runs a transaction to its end. After a fault it is to be rolled back.
///
/// # Errors
/// The server's fault.
pub async fn perform(session: &mut Session, input: &Input) -> Result<TransactionDone, Fault> {
    match input {
        Input::NewOrder(input) => new_order::perform(session, input).await,
        Input::Payment(input) => payment::perform(session, input).await,
        Input::OrderStatus(input) => order_status::perform(session, input).await,
        Input::Delivery(input) => delivery::perform(session, *input).await,
        Input::StockLevel(input) => stock_level::perform(session, *input).await,
    }
}
