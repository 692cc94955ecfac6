//! What can go wrong with an appliance.

use std::io;

use thiserror::Error;
use virtbench_agent::enclosure::LoopError;
use virtbench_agent::protocol::appliance::ServiceFailure;

use crate::process::MachineError;

/// What can go wrong with an appliance. Each kind names what to do next, where something can be done.
#[derive(Debug, Error)]
pub enum ApplianceError {
    /// It is invalid.
    #[error("{name}: {why}")]
    Spec {
        /// The appliance.
        name: String,
        /// What is wrong, and what would do.
        why: String,
    },
    /// It cannot do as it was told.
    #[error("{name}: {why}")]
    Refused {
        /// The appliance.
        name: String,
        /// Why, and what to do where something can be done.
        why: String,
    },
    /// Its machine does not run.
    #[error("{name}: {source}")]
    Machine {
        /// The appliance.
        name: String,
        /// What happened.
        source: MachineError,
    },
    /// A service did not start, or ended by itself.
    #[error("{name}: {}: {}{}", failure.service, failure.why, tail(failure))]
    Service {
        /// The appliance.
        name: String,
        /// What happened.
        failure: ServiceFailure,
    },
    /// A file cannot be made a disk of this host.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// There is no network namespace.
    #[error("{action}: {source}; run as root, or use a guest of QEMU with the network user")]
    Network {
        /// What failed.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The path to it cannot be measured.
    #[error("{name}: the path to it cannot be measured: {source}")]
    Path {
        /// The appliance.
        name: String,
        /// What the operating system said.
        source: io::Error,
    },
}

fn tail(failure: &ServiceFailure) -> String {
    if failure.log.is_empty() {
        return "; it has written nothing".into();
    }
    format!("; its last lines:\n  | {}", failure.log.join("\n  | "))
}
