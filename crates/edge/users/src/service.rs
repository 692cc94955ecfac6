//! The seam between the loop of users and what they ask for.

use std::time::Duration;
use std::{fmt, io};

use thiserror::Error;

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

/// What kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// No connection comes about.
    Unreachable,
    /// The connection ended in the middle.
    Gone,
    /// No answer in time.
    Timeout,
    /// User or password are wrong.
    Login,
    /// The server answered that something is wrong.
    Refused,
    /// The answer makes no sense.
    Protocol,
}

/// A fault, in words under which its like are counted: without anything that is different each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault<K = FaultKind> {
    /// What kind.
    pub kind: K,
    /// What the server or the client says.
    pub words: String,
}

impl<K> Fault<K> {
    /// A fault in these words.
    pub fn new(kind: K, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }
}

impl Fault {
    /// No answer within so many nanoseconds.
    #[must_use]
    pub fn timeout(ns: u64) -> Self {
        Self::new(FaultKind::Timeout, format!("no answer within {}", virtbench_units::format_duration_ns(ns)))
    }

    /// A connection that ended while an answer was awaited.
    pub fn gone(why: impl fmt::Display) -> Self {
        Self::new(FaultKind::Gone, format!("the connection ended: {why}"))
    }
}

impl<K> fmt::Display for Fault<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl<K: fmt::Debug> std::error::Error for Fault<K> {}

/// Why not, with the next step.
#[derive(Debug, Error)]
pub enum UsersError {
    /// The load makes no sense.
    #[error("{0}")]
    Plan(String),
    /// The service cannot be used.
    #[error("cannot use {target}: {fault}{}", advice(fault, login))]
    Service {
        /// Where it is.
        target: String,
        /// What is wrong.
        fault: Fault,
        /// What helps where the server turns users away.
        login: &'static str,
    },
    /// Connecting users takes too long.
    #[error("users cannot be connected within {} s: give fewer users", .0.as_secs())]
    TooLong(Duration),
    /// The service was gone before anything was measured.
    #[error("the load ended before it was measured: {0}")]
    EndedEarly(Fault),
    /// A stop was asked for before anything was measured.
    #[error("stopped")]
    Stopped,
    /// The driver itself failed.
    #[error("the driver failed: {0}")]
    Driver(#[from] io::Error),
}

/// The next step, where what went wrong says which.
fn advice(fault: &Fault, login: &str) -> String {
    match fault.kind {
        FaultKind::Unreachable => "; check that the server runs and listens there".into(),
        FaultKind::Gone => "; the server's log may say why".into(),
        FaultKind::Timeout => "; the server hangs, or needs a longer --timeout".into(),
        FaultKind::Login => format!("; {login}"),
        FaultKind::Protocol => "; check that it is a server of this kind".into(),
        FaultKind::Refused => String::new(),
    }
}
