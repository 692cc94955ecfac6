//! How much a target can do, and what it costs to come near.
//!
//! [VirtualFence 2013] (section 4.3) produces "a load of x % of saturation by finding the saturation throughput"
//! first. Here that is a search in three stages, none of which runs anything itself:
//!
//! 1. **closed loop**: as much as the target does when it is never left idle;
//! 2. **bisection**: the highest rate of an open loop that is kept up with. A rate is too high where
//!    completions fall short of it by more than the noise, or latency breaks the service level;
//! 3. **curve**: latency at shares of that rate.
//!
//! ```text
//! next_probe() -> Probe -> the caller applies it -> observe(RunResult) -> next_probe() -> ... -> None
//! ```

mod curve;
mod rules;
mod verdict;

pub use curve::{CurvePoint, Knee, knee_by_power};
pub use rules::{MAX_CURVE_POINTS, SaturationRules};
pub use verdict::{RunResult, Verdict};

use serde::Serialize;

use crate::interval::Span;
use crate::repetition::Progress;
use curve::{curve_point, shares};
use rules::{CLOSED, MOST_RATES, REPETITIONS};
use verdict::judge;

/// How far a rate that was kept up with is raised while none was too high.
const RAISE: f64 = 1.15;

/// What to run next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Probe {
    /// The load as it is, in a closed loop.
    Closed,
    /// The load in an open loop.
    Offered {
        /// Operations per second.
        per_second: f64,
    },
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saturation {
    /// What the closed loop did in each run, in operations per second.
    pub closed_loop: Vec<f64>,
    /// The highest rate that was kept up with, in operations per second; 0 if none was.
    pub rate: f64,
    /// That rate, and the lowest that was too high.
    pub bounds: Span,
    /// Whether the bounds are as close as was asked for.
    pub resolved: bool,
    /// Every rate that was tried in the bisection, in the order it was tried, with its verdict.
    pub tried: Vec<Tried>,
    /// The latency-throughput curve, by ascending rate.
    pub curve: Vec<CurvePoint>,
    /// Where the curve bends.
    pub knee: Option<Knee>,
}

/// A rate of the bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What came of it.
    #[serde(flatten)]
    pub point: CurvePoint,
    /// Whether it was kept up with.
    pub verdict: Verdict,
}

/// The search itself.
#[derive(Debug, Clone)]
pub struct SaturationSearch {
    rules: SaturationRules,
    closed: Vec<f64>,
    low: f64,
    high: Option<f64>,
    runs: Vec<RunResult>,
    tried: Vec<Tried>,
    curve: Vec<CurvePoint>,
    shares: Vec<f64>,
}

impl SaturationSearch {
    /// A search under these rules.
    #[must_use]
    pub fn new(rules: SaturationRules) -> Self {
        let shares = shares(rules.points.min(MAX_CURVE_POINTS));
        Self {
            rules,
            closed: Vec::new(),
            low: 0.0,
            high: None,
            runs: Vec::new(),
            tried: Vec::new(),
            curve: Vec::new(),
            shares,
        }
    }

    fn closed_is_known(&self) -> bool {
        CLOSED.judge(&self.closed, 0) != Progress::More
    }

    fn closed_rate(&self) -> f64 {
        self.closed.iter().sum::<f64>() / self.closed.len().max(1) as f64
    }

    fn is_resolved(&self) -> bool {
        self.high.is_some_and(|high| high - self.low <= self.rules.resolution * high)
    }

    fn is_bracketed(&self) -> bool {
        // Far below the closed loop's rate nothing would be left to draw a curve of.
        let hopeless = self.high.is_some_and(|high| self.low == 0.0 && high < self.closed_rate() / 1_000.0);
        let tells_nothing = self.rate() < self.rules.least_per_second;
        self.is_resolved() || hopeless || tells_nothing || self.tried.len() >= MOST_RATES as usize
    }

    /// The rate being tried.
    fn rate(&self) -> f64 {
        match self.high {
            None if self.low == 0.0 => self.closed_rate(),
            None => self.low * RAISE,
            // Without a service level the answer is just below the first rate that was too high.
            Some(high) if self.low == 0.0 && self.rules.slo.is_none() && self.tried.len() == 1 => 0.9 * high,
            Some(high) => f64::midpoint(self.low, high),
        }
    }

    /// What to run next; `None` when everything is known, or the closed loop did nothing at all.
    #[must_use]
    pub fn next_probe(&self) -> Option<Probe> {
        if !self.closed_is_known() {
            return Some(Probe::Closed);
        }
        if self.closed_rate() <= 0.0 {
            return None;
        }
        if !self.is_bracketed() {
            return Some(Probe::Offered { per_second: self.rate() });
        }
        let share = self.shares.get(self.curve.len()).filter(|_| self.low > 0.0)?;
        Some(Probe::Offered { per_second: share * self.low })
    }

    /// Takes in what the probe of [`Self::next_probe`] did.
    pub fn observe(&mut self, figures: RunResult) {
        match self.next_probe() {
            None => {}
            Some(Probe::Closed) => self.closed.push(figures.achieved),
            Some(Probe::Offered { per_second }) => {
                self.runs.push(figures);
                if self.is_bracketed() {
                    self.add_to_curve(per_second);
                } else {
                    self.judge_rate(per_second);
                }
            }
        }
    }

    fn judge_rate(&mut self, per_second: f64) {
        let verdict = judge(&self.rules, per_second, &self.runs);
        let Some(verdict) = verdict.filter(|_| self.runs.len() >= REPETITIONS.0) else { return };
        match verdict {
            Verdict::KeptUp => self.low = per_second,
            Verdict::FellShort | Verdict::TooSlow => self.high = Some(per_second),
        }
        self.tried.push(Tried { point: curve_point(per_second, &self.runs), verdict });
        self.runs.clear();
    }

    fn add_to_curve(&mut self, per_second: f64) {
        if self.runs.len() >= self.rules.repetitions.max(1) as usize {
            self.curve.push(curve_point(per_second, &self.runs));
            self.runs.clear();
        }
    }

    /// What is known by now; after [`Self::next_probe`] has said `None`, everything.
    #[must_use]
    pub fn result(&self) -> Saturation {
        Saturation {
            closed_loop: self.closed.clone(),
            rate: self.low,
            bounds: Span { low: self.low, high: self.high.unwrap_or(f64::INFINITY) },
            resolved: self.is_resolved(),
            tried: self.tried.clone(),
            curve: self.curve.clone(),
            knee: knee_by_power(&self.curve),
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
