//! Results of calls as an operation's phases and failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_proxmox::{
    Address, FaultKind, Limit, OperationTimes, PASSWORD_VARIABLE, Proxmox, ProxmoxError, Secret,
};
use virtbench_record::{FailureKind, Phase, Phases};

use crate::platform::Failure;

/// Adds where the time of a call went. Phases that were not reached stay unknown. Nothing is queued that the server tells of: a task that waits
/// for another one runs.
pub(super) fn add(phases: &mut Phases, times: &OperationTimes) {
    let reached = [
        (Phase::Client, times.client, true),
        (Phase::Accepted, times.accepted, true),
        (Phase::Running, times.running, times.was_over),
        (Phase::Done, times.done, times.was_accepted),
        (Phase::Seen, times.seen, times.was_over),
    ];
    for (phase, length, _) in reached.into_iter().filter(|(.., reached)| *reached) {
        phases.add(phase, nanoseconds(length));
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn failure(error: ProxmoxError) -> Failure {
    let kind = match &error {
        ProxmoxError::Settings(_) => FailureKind::Refused,
        ProxmoxError::Unreachable { .. } | ProxmoxError::Tls { .. } => FailureKind::Unreachable,
        ProxmoxError::Garbled { .. } => FailureKind::Garbled,
        ProxmoxError::Late { .. } => FailureKind::TimedOut,
        ProxmoxError::NotSeen { .. } => FailureKind::NotSeen,
        ProxmoxError::Fault { fault, .. } => match fault.kind {
            FaultKind::NotAuthenticated => FailureKind::NotAuthenticated,
            FaultKind::Denied => FailureKind::Denied,
            FaultKind::NotFound => FailureKind::Vanished,
            FaultKind::Locked | FaultKind::Overloaded => FailureKind::Busy,
            FaultKind::WrongState | FaultKind::NoQuorum => FailureKind::WrongState,
            FaultKind::NoRoom => FailureKind::NoRoom,
            FaultKind::NodeAway => FailureKind::Unreachable,
            FaultKind::Unsupported => FailureKind::Unsupported,
            FaultKind::Managed | FaultKind::AlreadyExists | FaultKind::InvalidArgument | FaultKind::Other => {
                FailureKind::Refused
            }
        },
    };
    Failure::new(kind, error.to_string())
}

/// Connects and logs in.
pub(super) fn open(address: &str, deadline: Instant) -> Result<(Arc<Proxmox>, Address), Failure> {
    let address = Address::parse(address).map_err(failure)?;
    let secret = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE);
    let secret = secret.map_err(|error| failure(error.into()))?;
    let server = Proxmox::connect(&address, secret, Limit::at(deadline)).map_err(failure)?;
    Ok((Arc::new(server), address))
}
