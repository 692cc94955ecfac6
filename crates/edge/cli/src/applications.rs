//! Applications that a study measures, as a command shows them, and exit codes of what can go wrong with appliances.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use virtbench_appliance::{ApplianceError, ErrorKind};
use virtbench_lab::LabError;
use virtbench_study::{ApplicationsError, Event, Observer, Progress};

use crate::exit::{Failure, Kind, guests_kind, lab_kind};
use crate::say::{self, tell};
use crate::{interrupt, progress};

/// The longest without a line, where lines are wanted.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Does something that tells of its progress: what it does is shown on a terminal, and in a line now and then where
/// lines are wanted; remarks go to stderr.
pub fn with_progress<T>(
    act: impl FnOnce(&mut Progress<'_>) -> Result<T, ApplicationsError>,
) -> Result<T, Failure> {
    shown(act).map_err(applications_failure)
}

/// The same of something that fails otherwise.
pub fn shown<T>(act: impl FnOnce(&mut Progress<'_>) -> T) -> T {
    let mut shown = Shown { bar: progress::timer(None, ""), told: Instant::now() };
    let done = act(&mut Progress { stop: interrupt::flag(), observer: &mut shown });
    shown.bar.finish_and_clear();
    done
}

/// What is being done.
struct Shown {
    bar: ProgressBar,
    told: Instant,
}

impl Observer for Shown {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Remark(what) => self.bar.suspend(|| tell!("{what}")),
            Event::Doing(what) if !say::is_in_lines() => {
                self.bar.set_message(what.to_owned());
                self.bar.tick();
            }
            Event::Doing(what) if self.told.elapsed() >= LINE_EVERY => {
                self.told = Instant::now();
                tell!("{what}");
            }
            _ => {}
        }
    }
}

/// The failure of a command that could not measure applications.
pub fn applications_failure(error: ApplicationsError) -> Failure {
    Failure::new(applications_kind(&error), error)
}

pub fn applications_kind(error: &ApplicationsError) -> Kind {
    match error {
        ApplicationsError::Input(_) => Kind::Usage,
        ApplicationsError::Target(_) => Kind::Target,
        ApplicationsError::Environment(_) => Kind::Environment,
        ApplicationsError::Measured(_) => Kind::Measured,
        ApplicationsError::Machine(error @ LabError::Machine { .. }) => lab_kind(error),
        ApplicationsError::Machine(_) => Kind::Environment,
        ApplicationsError::Folder(_) => Kind::Folder,
        ApplicationsError::Stopped => Kind::Interrupted,
        ApplicationsError::Guests(error) => guests_kind(error),
    }
}

/// What kind of failure it is.
pub fn appliance_kind(error: &ApplianceError) -> Kind {
    match error.kind() {
        ErrorKind::Asked => Kind::Usage,
        ErrorKind::Host => Kind::Environment,
        ErrorKind::Storage => Kind::Target,
        ErrorKind::Stopped => Kind::Interrupted,
        ErrorKind::Other => Kind::Other,
    }
}

/// A failure with its exit code.
pub fn failure(error: ApplianceError) -> Failure {
    Failure::new(appliance_kind(&error), error)
}
