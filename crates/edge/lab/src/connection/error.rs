//! What goes wrong in a conversation with an agent.

use std::time::Duration;

use thiserror::Error;
use virtbench_agent::protocol::{FailureKind, ProtocolError};

/// A conversation that went wrong. The connection is of no more use then, except after `Refused`.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// It was not waited for, as everything is to stop.
    #[error("stopped")]
    Stopped,
    /// It broke.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The agent took too long.
    #[error("the agent did not {expected} within {} s", limit.as_secs_f64())]
    TimedOut {
        /// What it was to do.
        expected: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The load's time is long over.
    #[error(
        "the agent did not finish the load within {} s; it {}", limit.as_secs_f64(),
        if *answers { "still answers, so its disk does not" } else { "does not answer either: the guest hangs" }
    )]
    NotFinished {
        /// How long it was waited for.
        limit: Duration,
        /// Whether the agent has answered pings since the load's time was over.
        answers: bool,
    },
    /// The agent said something that does not belong here.
    #[error("the agent was to {expected} but said {said}")]
    Unexpected {
        /// What it was to do.
        expected: &'static str,
        /// What it said.
        said: String,
    },
    /// The agent could not do what it was asked for.
    #[error("{message}")]
    Refused {
        /// What kind of failure.
        kind: FailureKind,
        /// Why, for the user.
        message: String,
    },
}
