//! What kind of number a figure is, and the interval of its mean that follows from it.
//!
//! Student's t draws an interval of the same width on both sides of a mean, also where a figure cannot
//! go: a throughput below zero, an index of fairness above one. Cutting off the impossible part would
//! leave what is worse: figures that end somewhere are skewed, and the symmetric interval then misses
//! the truth more often than it says (three deviations around zero: 92 % instead of 95 %; Jain's
//! index of two machines: 82 %). So the interval is made on a scale without ends, logarithms or
//! log-odds, with the standard error carried over to it (delta method), and mapped back. It lies where
//! the figure can be, contains the mean, and covers the truth as often as it says (tests below).

use crate::interval::{CONFIDENCE, Estimate, Method, Span, mean_interval_at, student_half_width};

/// From fewer samples than this, figures that end somewhere have no interval: of two, Student's t makes
/// 12.7 standard errors, which on such a scale are orders of magnitude and tell a reader nothing. Ratios
/// have one from two on, for a verdict to rest on.
pub const LEAST_SAMPLES: usize = 3;

/// What a figure can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// Any number of either sign, such as a change or an error. Arithmetic mean.
    Signed,
    /// Zero or more: a rate, a time, a use of processors, a deviation. Arithmetic mean.
    Positive,
    /// How many times another figure. Half and double cancel: geometric mean. A ratio of zero, which
    /// has no logarithm, is no sample.
    Ratio,
    /// A part of a whole, 0 to 1. Arithmetic mean.
    Share,
    /// Jain's index of fairness of so many, 1/n to 1. Arithmetic mean.
    Fairness {
        /// How many share; at least two.
        members: usize,
    },
}

impl FigureKind {
    /// The mean of `samples` with its interval of 95 %. `seed` determines a bootstrap. Samples that are
    /// not finite are no measurements and are passed over; none left is `None`, and fewer than
    /// [`LEAST_SAMPLES`] (of ratios and signed figures, a single one) have no interval.
    #[must_use]
    pub fn estimate(self, samples: &[f64], seed: u64) -> Option<Estimate> {
        self.estimate_at(samples, CONFIDENCE, seed)
    }

    /// The same with an interval of another confidence, a share between 0 and 1.
    #[must_use]
    pub fn estimate_at(self, samples: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
        match self {
            Self::Signed => mean_interval_at(samples, confidence, seed),
            Self::Ratio => geometric(samples, confidence, seed),
            Self::Positive => on(&Scale::Logarithm, samples, confidence),
            Self::Share => on(&Scale::LogOdds(Span { low: 0.0, high: 1.0 }), samples, confidence),
            Self::Fairness { members } => {
                let low = 1.0 / members.max(2) as f64;
                on(&Scale::LogOdds(Span { low, high: 1.0 }), samples, confidence)
            }
        }
    }
}

fn geometric(ratios: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    let logarithms: Vec<f64> = ratios.iter().filter(|ratio| **ratio > 0.0).map(|ratio| ratio.ln()).collect();
    let estimate = mean_interval_at(&logarithms, confidence, seed)?;
    let interval = estimate.interval.map(|(span, method)| (span.map(f64::exp), method));
    Some(Estimate { mean: estimate.mean.exp(), interval, ..estimate })
}

/// A scale on which a figure has no ends.
enum Scale {
    /// Of what is above zero.
    Logarithm,
    /// Of what lies between two ends.
    LogOdds(Span),
}

impl Scale {
    /// The interval around `mean` that has `half` on both sides on this scale, where `half` is in the
    /// figure's own unit. `None` where the mean lies outside of what the figure can be.
    fn around(&self, mean: f64, half: f64) -> Option<Span> {
        if half <= 0.0 {
            return Some(Span { low: mean, high: mean });
        }
        match self {
            Self::Logarithm => {
                let factor = (half / mean).exp();
                (mean > 0.0).then(|| Span { low: mean / factor, high: mean * factor })
            }
            Self::LogOdds(ends) => {
                let width = ends.high - ends.low;
                let (below, above) = ((mean - ends.low) / width, (ends.high - mean) / width);
                let factor = (half / width / (below * above)).exp();
                let share = |odds: f64| ends.high - width / (1.0 + odds);
                (below > 0.0 && above > 0.0)
                    .then(|| Span { low: share(below / above / factor), high: share(below / above * factor) })
            }
        }
    }
}

fn on(scale: &Scale, samples: &[f64], confidence: f64) -> Option<Estimate> {
    let (mean, samples, half) = student_half_width(samples, confidence)?;
    let half = half.filter(|_| samples >= LEAST_SAMPLES);
    let interval = half.and_then(|half| Some((scale.around(mean, half)?, Method::StudentT)));
    Some(Estimate { mean, samples, interval })
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
