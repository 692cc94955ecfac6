//! How a study goes: what is kept running meanwhile, and what happens when.

use std::time::{SystemTime, UNIX_EPOCH};

use virtbench_record::{GuestsState, PointRecord};

use crate::schedule::Step;
use crate::study_error::StudyError;

/// What happens in a study, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// The machines of these environments are being started.
    Starting(&'a str),
    /// A step begins.
    Measuring {
        /// Steps measured so far, of this and earlier sittings.
        done: usize,
        /// Steps in all.
        total: usize,
        /// The step.
        step: &'a Step,
        /// The name of its environment.
        environment: &'a str,
    },
    /// A machine hung and is started anew; its point is measured again.
    Restarting {
        /// The name of its environment.
        environment: &'a str,
        /// What happened, with its console's last lines.
        error: &'a StudyError,
    },
    /// What guests without a load cost is being measured.
    Idling(GuestsState),
    /// A step is in the folder.
    Recorded(&'a PointRecord),
}

/// How machines are kept while others are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Whether those that wait are quiesced. What it costs to let them run is then measured once, at
    /// the beginning of each sitting.
    pub quiesce: bool,
    /// How many are kept booted at once, at least one. With fewer than there are environments, that
    /// which was not used for longest makes room.
    pub booted: usize,
}

impl Course {
    /// All booted, all running.
    pub const SIDE_BY_SIDE: Self = Self { quiesce: false, booted: usize::MAX };
}

/// Now, in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
