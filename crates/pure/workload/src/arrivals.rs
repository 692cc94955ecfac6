//! When the operations of an open loop are meant to start.

use serde::{Deserialize, Serialize};
use virtbench_units::{Random, SeedSequence};

/// When operations arrive, for an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Constant,
    /// At exponentially distributed distances, as independent users do.
    Poisson,
}

/// An open loop: operations arrive at a rate, whether earlier ones have completed or not. Latency
/// then counts from the intended start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Operations per second, of all workers together.
    pub per_second: f64,
    /// When they arrive.
    pub arrivals: Arrivals,
}

/// The intended starts of one worker, one after the other, in nanoseconds since the load began.
///
/// The rate is that of all workers together. With constant arrivals the workers take turns, so that
/// together they keep equal distances; independent Poisson processes add up to one.
#[derive(Debug, Clone)]
pub struct ArrivalTimes {
    arrivals: Arrivals,
    gap_ns: f64,
    first_ns: f64,
    drawn: u64,
    /// Poisson only: the last arrival, whole nanoseconds and the rest, so that a week of them
    /// loses no precision.
    at_ns: u64,
    rest_ns: f64,
    random: Random,
}

impl ArrivalTimes {
    /// The arrivals of worker number `worker` of `workers`.
    #[must_use]
    pub fn new(rate: Rate, seed: u64, worker: u32, workers: u32) -> Self {
        // Seeds of their own: which operation comes next must not depend on when it comes.
        let mut seeds = SeedSequence::new(seed ^ 0x6172_7269_7661_6c73);
        let mut worker_seed = seeds.next_seed();
        for _ in 0..worker {
            worker_seed = seeds.next_seed();
        }
        Self {
            arrivals: rate.arrivals,
            gap_ns: 1e9 / rate.per_second * f64::from(workers.max(1)),
            first_ns: 1e9 / rate.per_second * f64::from(worker),
            drawn: 0,
            at_ns: 0,
            rest_ns: 0.0,
            random: Random::new(worker_seed),
        }
    }

    /// The next intended start, never earlier than the one before.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn next_ns(&mut self) -> u64 {
        match self.arrivals {
            Arrivals::Constant => {
                let at_ns = self.first_ns + self.drawn as f64 * self.gap_ns;
                self.drawn += 1;
                at_ns as u64
            }
            Arrivals::Poisson => {
                // 1 - unit() lies in (0, 1], so the logarithm is finite.
                self.rest_ns -= (1.0 - self.random.unit()).ln() * self.gap_ns;
                let whole = self.rest_ns as u64;
                self.at_ns += whole;
                self.rest_ns -= whole as f64;
                self.at_ns
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, per_second: f64, worker: u32, workers: u32, count: usize) -> Vec<u64> {
        let mut times = ArrivalTimes::new(Rate { per_second, arrivals }, 7, worker, workers);
        std::iter::repeat_with(|| times.next_ns()).take(count).collect()
    }

    #[test]
    fn constant_arrivals_of_all_workers_keep_equal_distances() {
        let mut all: Vec<u64> = (0..3).flat_map(|w| times(Arrivals::Constant, 1000.0, w, 3, 100)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{:?}", &all[..6]);
    }

    #[test]
    fn poisson_arrivals_have_exponential_distances() {
        let times = times(Arrivals::Poisson, 1000.0, 0, 1, 100_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        // An exponential distribution's standard deviation is its mean; 63.2 % lie below it.
        assert!((variance.sqrt() - 1.0).abs() < 0.03, "{variance}");
        let below = gaps.iter().filter(|gap| **gap < 1.0).count() as f64 / gaps.len() as f64;
        assert!((below - 0.632).abs() < 0.01, "{below}");
    }

    #[test]
    fn workers_draw_arrivals_of_their_own() {
        assert_ne!(times(Arrivals::Poisson, 10.0, 0, 2, 5), times(Arrivals::Poisson, 10.0, 1, 2, 5));
    }
}
