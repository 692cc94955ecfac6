//! From callers that wait into futures.

use virtbench_users::runtime;

use crate::address::Connect;
use crate::error::OltpError;
use crate::manner::Manner;
use crate::session::Session;

/// Runs a future to its end on this thread.
pub fn wait<T>(future: impl Future<Output = Result<T, OltpError>>) -> Result<T, OltpError> {
    runtime()?.block_on(future)
}

/// A connection, with an error that says where to.
pub async fn connected(connect: &Connect, manner: Manner) -> Result<Session, OltpError> {
    let address = || connect.address.clone();
    Session::open(connect, manner).await.map_err(|fault| OltpError::Connect { address: address(), fault })
}
