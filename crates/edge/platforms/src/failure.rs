//! An operation, or a question, that failed.

use thiserror::Error;
use virtbench_record::FailureKind;

/// Why something failed, in words that say what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What a user is told. It has no secret in it.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
