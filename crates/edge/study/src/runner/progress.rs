//! How progress is told, a stop heard of, and time: the host's clocks, and how machines are kept while others are measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use virtbench_engine::monotonic_ns;

use crate::runner::event::{Event, Observer};

/// It is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Whom to tell of progress, and who may ask to stop.
pub struct Progress<'a> {
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what happens.
    pub observer: &'a mut dyn Observer,
}

impl Progress<'_> {
    /// Says what is being done.
    pub fn doing(&mut self, what: &str) {
        self.observer.event(Event::Doing(what));
    }

    /// Says what a user would like to know.
    pub fn remark(&mut self, what: &str) {
        self.observer.event(Event::Remark(what));
    }

    /// So many measurements are done and so many left at most; where that is unknown, those planned stand, and one more.
    pub(crate) fn done(&mut self, done: u64, left: Option<u64>, planned: u64) {
        let total = left.map_or(planned.max(done + 1), |left| done + left);
        self.observer.event(Event::Done { done, total });
    }

    /// # Errors
    /// It is to stop.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
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
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A length of time in nanoseconds.
pub(crate) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// The host's clock may be slewed by this share, and differ by so much more, in nanoseconds, before a run does not count.
const SLEWED_SHARE: f64 = 0.001;

const JUMP_NS: u64 = 100_000_000;

/// Both clocks of the host at one moment.
pub(crate) struct HostClock {
    monotonic_ns: u64,
    unix_ns: u64,
}

impl HostClock {
    pub(crate) fn now() -> Self {
        Self { monotonic_ns: monotonic_ns(), unix_ns: unix_ns() }
    }

    /// Whether the host's clock was set since then, in words.
    pub(crate) fn jumped(&self) -> Option<String> {
        self.differs(&Self::now())
    }

    fn differs(&self, later: &Self) -> Option<String> {
        let passed_ns = later.monotonic_ns.saturating_sub(self.monotonic_ns);
        let by_ns = later.unix_ns.abs_diff(self.unix_ns.saturating_add(passed_ns));
        let allowed_ns = JUMP_NS as f64 + SLEWED_SHARE * passed_ns as f64;
        (by_ns as f64 > allowed_ns).then(|| {
            let by_ms = by_ns / 1_000_000;
            format!("the host's clock was set by {by_ms} ms meanwhile")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_voids_and_one_that_is_slewed_does_not() {
        let at = |monotonic_ms: u64, unix_ms: u64| {
            let [monotonic_ns, unix_ns] = [monotonic_ms, unix_ms].map(|ms| ms * 1_000_000);
            HostClock { monotonic_ns, unix_ns }
        };
        let begun = at(10_000, 1_000_000);
        assert_eq!(begun.differs(&at(70_000, 1_060_000)), None);
        assert_eq!(begun.differs(&at(70_000, 1_060_120)), None);
        for later in [1_061_000, 1_059_000, 900_000] {
            let words = begun.differs(&at(70_000, later)).unwrap();
            assert!(words.starts_with("the host's clock was set by "), "{words}");
        }
    }
}
