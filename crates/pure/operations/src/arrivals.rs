//! When operations are meant to start.

use virtbench_units::Random;

/// The intended starts of an open loop: a Poisson process, since many users act independently of each other. It never ends.
#[derive(Debug, Clone)]
pub struct Arrivals {
    random: Random,
    gap_ns: f64,
    at_ns: f64,
}

impl Arrivals {
    /// So many operations a minute.
    #[must_use]
    pub fn new(per_minute: f64, seed: u64) -> Self {
        Self { random: Random::new(seed), gap_ns: 60e9 / per_minute, at_ns: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    /// Nanoseconds from the beginning.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is not negative")]
    fn next(&mut self) -> Option<u64> {
        self.at_ns -= (1.0 - self.random.unit()).ln() * self.gap_ns;
        Some(self.at_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_arrive_as_are_asked_for() {
        for (per_minute, seed) in [(100.0, 1), (500.0, 2)] {
            let hour = Arrivals::new(per_minute, seed).take_while(|at| *at < 3_600_000_000_000).count();
            let expected = per_minute * 60.0;
            assert!((hour as f64 - expected).abs() < 4.0 * expected.sqrt(), "{hour}");
        }
        let starts: Vec<u64> = Arrivals::new(100.0, 3).take(1000).collect();
        assert!(starts.is_sorted());
        assert_eq!(starts, Arrivals::new(100.0, 3).take(1000).collect::<Vec<_>>());
    }
}
