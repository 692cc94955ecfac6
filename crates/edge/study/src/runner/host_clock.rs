//! The clocks of this host: whether one was set while something was measured.

use virtbench_engine::monotonic_ns;

use crate::runner::course::unix_ns;

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
