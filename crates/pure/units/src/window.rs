//! When operations count.

/// When operations count: those that end in it, and those that should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Begin, in nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// End; what ends then does not count any more.
    pub end_ns: u64,
}

impl Window {
    /// Whether what ends at this moment counts; in nanoseconds of the monotonic clock.
    #[must_use]
    pub fn contains(self, at_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&at_ns)
    }

    /// Which second of measuring a moment that counts lies in.
    #[must_use]
    pub fn second(self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns) / 1_000_000_000
    }

    /// Which second of measuring is the last.
    #[must_use]
    pub fn last_second(self) -> u64 {
        self.second(self.end_ns.saturating_sub(1))
    }
}
