//! How machines are kept while others are measured.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A length of time in nanoseconds.
pub(crate) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
