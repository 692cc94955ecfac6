//! Why users did not do what was asked for.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::fault::Fault;

/// Why not, with the next step.
#[derive(Debug, Error)]
pub enum UsersError {
    /// The load makes no sense.
    #[error("{0}")]
    Plan(String),
    /// The service cannot be used.
    #[error("cannot use {target}: {fault}; check that the server runs and listens there")]
    Service {
        /// Where it is.
        target: String,
        /// What is wrong.
        fault: Fault,
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
