//! The seam between the loop of users and what they ask for.

use std::time::Duration;

use crate::fault::Fault;

/// Something that users ask for.
pub trait Service: Sync {
    /// A user of it.
    type User: ServiceUser;

    /// Names of the kinds of operation; there is one at least.
    fn kinds(&self) -> Vec<String>;

    /// Looks at the server, makes what users will ask for, and gives what the server says of itself. No answer is waited for longer
    /// than `limit`.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn prepare(&self, limit: Duration) -> impl Future<Output = Result<Option<String>, Fault>>;

    /// Where user and password come from, for those whom the server turns away.
    fn login(&self) -> &'static str {
        "check user and password"
    }

    /// User number `number`, not connected yet, whose choices the seed determines.
    fn user(&self, number: u32, seed: u64) -> Self::User;
}

/// A user with a connection.
pub trait ServiceUser {
    /// Connects.
    ///
    /// # Errors
    /// Why not.
    fn connect(&mut self) -> impl Future<Output = Result<(), Fault>>;

    /// Chooses what to do next: the number of its kind.
    fn choose(&mut self) -> usize;

    /// Does it; connects first where the connection is gone. Dropped in the middle where that takes too long: the user then has
    /// no connection.
    ///
    /// # Errors
    /// Why it failed.
    fn perform(&mut self, kind: usize) -> impl Future<Output = Result<(), Fault>>;
}

/// Waits for an answer, but no longer than `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let late = || Err(Fault::timeout(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| late())
}
