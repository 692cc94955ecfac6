//! From callers that wait into futures.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_users::runtime;

use crate::address::Connect;
use crate::error::OltpError;
use crate::fault::no_answer;
use crate::manner::Manner;
use crate::postgresql::dialled;
use crate::session::Session;

/// How often it is looked whether a stop was asked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a future to its end on this thread.
pub fn wait<T>(future: impl Future<Output = Result<T, OltpError>>) -> Result<T, OltpError> {
    runtime()?.block_on(future)
}

/// A connection, with an error that says where to.
pub async fn connected(connect: &Connect, manner: Manner) -> Result<Session, OltpError> {
    let address = || Box::new(connect.address.clone());
    Session::open(connect, manner).await.map_err(|fault| OltpError::Connect { address: address(), fault })
}

/// A connection of PostgreSQL's own client, for what is no load: the caller drives the connection.
///
/// # Errors
/// No connection came about.
pub async fn postgresql_client(
    connect: &Connect,
) -> Result<
    (tokio_postgres::Client, impl Future<Output = Result<(), tokio_postgres::Error>> + use<>),
    OltpError,
> {
    let address = || Box::new(connect.address.clone());
    dialled(connect).await.map_err(|fault| OltpError::Connect { address: address(), fault })
}

/// Waits within the limit, and no longer than until a stop is asked for. `what` is said of what took longer.
pub async fn bounded<T>(
    (limit, what): (Duration, &str),
    stop: &AtomicBool,
    future: impl Future<Output = Result<T, OltpError>>,
) -> Result<T, OltpError> {
    let (mut future, begun) = (pin!(future), Instant::now());
    loop {
        match tokio::time::timeout(LOOK.min(limit), &mut future).await {
            Ok(done) => return done,
            Err(_) if stop.load(Ordering::Relaxed) => return Err(OltpError::Stopped),
            Err(_) if begun.elapsed() >= limit => {
                return Err(OltpError::server(format!("{what}: the server does not answer"))(no_answer(
                    limit,
                )));
            }
            Err(_) => {}
        }
    }
}
