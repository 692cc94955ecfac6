//! Applications that a study measures, as a command shows them.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use virtbench_lab::LabError;
use virtbench_study::{ApplicationEvent, ApplicationsError, Progress};

use crate::exit::{Failure, Kind};
use crate::guests::guests_kind;
use crate::say::tell;
use crate::{interrupt, progress};

/// Off a terminal, the longest without a line.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Does something that tells of its progress: what it does is shown on a terminal, and in a line now and then
/// elsewhere; remarks go to stderr.
pub fn with_progress<T>(
    act: impl FnOnce(&mut Progress<'_>) -> Result<T, ApplicationsError>,
) -> Result<T, Failure> {
    let bar = progress::timer(None, "");
    let is_terminal = io::stderr().is_terminal();
    let mut told = Instant::now();
    let mut on_event = |event: ApplicationEvent<'_>| match event {
        ApplicationEvent::Remark(what) => bar.suspend(|| tell!("{what}")),
        ApplicationEvent::Doing(what) if is_terminal => {
            bar.set_message(what.to_owned());
            bar.tick();
        }
        ApplicationEvent::Doing(what) if told.elapsed() >= LINE_EVERY => {
            told = Instant::now();
            tell!("{what}");
        }
        _ => {}
    };
    let done = act(&mut Progress { stop: interrupt::flag(), on_event: &mut on_event });
    bar.finish_and_clear();
    done.map_err(applications_failure)
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
