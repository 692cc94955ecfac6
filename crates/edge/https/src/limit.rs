//! Until when something may take.

use std::time::{Duration, Instant};

/// A moment, and how far off it was when it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    until: Instant,
    length: Duration,
}

impl Limit {
    /// Until this moment.
    #[must_use]
    pub fn at(until: Instant) -> Self {
        Self { until, length: until.saturating_duration_since(Instant::now()) }
    }

    /// What is left.
    #[must_use]
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What there was in the beginning.
    #[must_use]
    pub fn length(self) -> Duration {
        self.length
    }
}
