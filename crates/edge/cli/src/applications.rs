//! Applications that a study measures, as a command shows them.

use virtbench_lab::LabError;
use virtbench_study::{ApplicationEvent, ApplicationsError, Progress};

use crate::exit::{Failure, Kind};
use crate::guests::guests_kind;
use crate::interrupt;
use crate::say::tell;

/// Does something that tells of its progress; remarks go to stderr.
pub fn with_progress<T>(
    act: impl FnOnce(&mut Progress<'_>) -> Result<T, ApplicationsError>,
) -> Result<T, Failure> {
    let mut on_event = |event: ApplicationEvent<'_>| {
        if let ApplicationEvent::Remark(what) = event {
            tell!("{what}");
        }
    };
    act(&mut Progress { stop: interrupt::flag(), on_event: &mut on_event }).map_err(applications_failure)
}

/// The failure of a command that could not measure applications.
pub fn applications_failure(error: ApplicationsError) -> Failure {
    let kind = match &error {
        ApplicationsError::Input(_) => Kind::Usage,
        ApplicationsError::Target(_) => Kind::Target,
        ApplicationsError::Environment(_) => Kind::Environment,
        ApplicationsError::Measured(_) => Kind::Measured,
        ApplicationsError::Machine(LabError::Machine { .. }) => Kind::Guest,
        ApplicationsError::Machine(_) => Kind::Environment,
        ApplicationsError::Folder(_) => Kind::Folder,
        ApplicationsError::Stopped => Kind::Interrupted,
        ApplicationsError::Guests(error) => guests_kind(error),
    };
    Failure::new(kind, error)
}
