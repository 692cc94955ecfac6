//! Why users did not do what was asked for.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::fault::{Fault, FaultKind};

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
