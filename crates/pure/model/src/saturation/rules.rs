//! What a search is held to.

use crate::repetition::RepeatRule;
use crate::slo::Slo;

/// The most points a curve can have.
pub const MAX_CURVE_POINTS: u32 = 100;
/// The most rates that are tried before the search takes what it has.
pub(super) const MOST_RATES: u32 = 16;
/// Repetitions of a rate: at least, and at most where the verdict hangs in the balance.
pub(super) const REPETITIONS: (usize, usize) = (2, 5);

/// What the search is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturationRules {
    /// The service level, if latency is limited.
    pub slo: Option<Slo>,
    /// Completions may fall this far short of the rate, as a share of it, without being called short.
    pub slack: f64,
    /// The bisection ends when the bounds are this close, as a share of the upper one.
    pub resolution: f64,
    /// Measuring time of a run, in seconds.
    pub seconds: f64,
    /// A run at a lower rate holds too few operations to tell whether it is kept up with, in operations per second; 0 where any tells.
    pub least_per_second: f64,
    /// Whether arrivals are random, so that their number itself varies.
    pub poisson: bool,
    /// Points of the curve.
    pub points: u32,
    /// Repetitions of each point of the curve.
    pub repetitions: u32,
}

impl SaturationRules {
    /// A slack of 1 %, a resolution of 2 %, 12 points of two repetitions, random arrivals.
    #[must_use]
    pub fn new(seconds: f64) -> Self {
        Self {
            slo: None,
            slack: 0.01,
            resolution: 0.02,
            seconds,
            least_per_second: 0.0,
            poisson: true,
            points: 12,
            repetitions: 2,
        }
    }

    /// The most runs that a search under these rules can ask for.
    #[must_use]
    pub fn most_runs(&self) -> u32 {
        CLOSED.most() + MOST_RATES * 5 + self.points.min(MAX_CURVE_POINTS) * self.repetitions.max(1)
    }
}

/// Repetitions of the closed loop.
pub(super) const CLOSED: RepeatRule = RepeatRule::Until { half_width: 0.05, most: 5 };
