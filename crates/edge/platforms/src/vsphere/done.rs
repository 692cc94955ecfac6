//! The results of calls of vSphere's, as an operation's phases and failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_record::{FailureKind, Phase, Phases};
use virtbench_vsphere::{
    Address, FaultKind, Operation, OperationTimes, PASSWORD_VARIABLE, Reference, Secret, Until, Vsphere,
    VsphereError,
};

use crate::platform::Failure;

pub(super) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// The result of one or several calls.
#[derive(Debug)]
pub(super) struct CallResult {
    pub(super) phases: Phases,
    pub(super) retries: u32,
    pub(super) result: Result<(), Failure>,
}

impl Default for CallResult {
    fn default() -> Self {
        Self { phases: Phases::default(), retries: 0, result: Ok(()) }
    }
}

impl CallResult {
    pub(super) fn refused(self, why: Failure) -> Self {
        Self { result: Err(why), ..self }
    }

    pub(super) fn run(
        &mut self,
        server: &Vsphere,
        operation: &Operation<'_>,
        deadline: Instant,
    ) -> Option<Reference> {
        let (course, made) = server.perform(operation, Until::Seen, deadline);
        self.add(&course, Until::Seen);
        match made {
            Ok(made) => made,
            Err(error) => {
                self.result = Err(failure(error));
                None
            }
        }
    }

    /// Phases that were not reached stay unknown.
    pub(super) fn add(&mut self, course: &OperationTimes, last: Until) {
        self.retries += course.retries;
        let reached = [
            (Phase::Client, course.client, true),
            (Phase::Accepted, course.accepted, true),
            (Phase::Queued, course.queued, course.was_over),
            (Phase::Running, course.running, course.was_over),
            (Phase::Done, course.done, course.was_accepted),
            (Phase::Seen, course.seen, course.was_over && last == Until::Seen),
        ];
        for (phase, length, _) in reached.into_iter().filter(|(.., reached)| *reached) {
            self.phases.add(phase, nanoseconds(length));
        }
    }
}

pub(super) fn failure(error: VsphereError) -> Failure {
    let kind = match &error {
        VsphereError::Settings(_) => FailureKind::Refused,
        VsphereError::Unreachable { .. } | VsphereError::Tls { .. } | VsphereError::Http { .. } => {
            FailureKind::Unreachable
        }
        VsphereError::Garbled { .. } => FailureKind::Garbled,
        VsphereError::Late { .. } => FailureKind::TimedOut,
        VsphereError::NotSeen { .. } => FailureKind::NotSeen,
        VsphereError::Fault { fault, .. } => match fault.kind {
            FaultKind::NotAuthenticated | FaultKind::InvalidLogin => FailureKind::NotAuthenticated,
            FaultKind::NoPermission => FailureKind::Denied,
            FaultKind::InvalidPowerState | FaultKind::InvalidState => FailureKind::WrongState,
            FaultKind::NotFound => FailureKind::Vanished,
            FaultKind::NoRoom => FailureKind::NoRoom,
            FaultKind::Busy => FailureKind::Busy,
            FaultKind::TimedOut => FailureKind::TimedOut,
            FaultKind::Unsupported => FailureKind::Unsupported,
            FaultKind::DuplicateName
            | FaultKind::InvalidArgument
            | FaultKind::Cancelled
            | FaultKind::Other => FailureKind::Refused,
        },
    };
    Failure::new(kind, error.to_string())
}

/// Connects and logs in.
pub(super) fn open(address: &str, deadline: Instant) -> Result<(Arc<Vsphere>, Address), Failure> {
    let address = Address::parse(address).map_err(failure)?;
    let password = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE);
    let password = password.map_err(|error| failure(error.into()))?;
    let server = Vsphere::connect(&address, password, deadline).map_err(failure)?;
    Ok((Arc::new(server), address))
}
