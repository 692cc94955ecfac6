//! Results of calls as an operation's phases and failures.

use std::time::Duration;

use virtbench_openstack::{FaultKind, OpenStackError, OperationTimes};
use virtbench_record::{FailureKind, Phase, Phases};

use crate::failure::Failure;

/// Adds where the time of an operation went. Phases that were not reached stay unknown.
pub(super) fn add(phases: &mut Phases, times: &OperationTimes) {
    let reached = [
        (Phase::Client, Some(times.client), true),
        (Phase::Accepted, Some(times.accepted), true),
        (Phase::Queued, Some(times.scheduling), times.was_over),
        (Phase::Running, Some(times.running), times.was_over),
        (Phase::Done, Some(times.done), times.was_accepted),
        (Phase::Seen, times.seen, times.was_over),
    ];
    for (phase, length) in
        reached.into_iter().filter_map(|(phase, length, reached)| Some((phase, length.filter(|_| reached)?)))
    {
        phases.add(phase, nanoseconds(length));
    }
}

pub(super) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn failure(error: OpenStackError) -> Failure {
    let kind = match &error {
        OpenStackError::Settings(_) => FailureKind::Refused,
        OpenStackError::Unreachable { .. } | OpenStackError::Tls { .. } => FailureKind::Unreachable,
        OpenStackError::Garbled { .. } => FailureKind::Garbled,
        OpenStackError::Late { .. } => FailureKind::TimedOut,
        OpenStackError::NotSeen { .. } => FailureKind::NotSeen,
        OpenStackError::Fault { fault, .. } => match fault.kind {
            FaultKind::NotAuthenticated => FailureKind::NotAuthenticated,
            FaultKind::Denied => FailureKind::Denied,
            FaultKind::NotFound => FailureKind::Vanished,
            FaultKind::Conflict => FailureKind::WrongState,
            FaultKind::RateLimited => FailureKind::Busy,
            FaultKind::Quota | FaultKind::NoValidHost => FailureKind::NoRoom,
            FaultKind::Server if matches!(fault.status, 502..=504) => FailureKind::Unreachable,
            FaultKind::Unsupported => FailureKind::Unsupported,
            FaultKind::Server | FaultKind::InvalidArgument | FaultKind::Other => FailureKind::Refused,
        },
    };
    Failure::new(kind, error.to_string())
}
