//! Why an operation failed.

use std::fmt;

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
