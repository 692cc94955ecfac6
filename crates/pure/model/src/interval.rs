//! How well a few samples know their mean, within what a figure of its kind can be.
//!
//! Two methods, chosen by the number of samples alone:
//!
//! - **Fewer than [`BOOTSTRAP_LEAST`]: Student's t.** A bootstrap can only redraw the values it was
//!   given, and three to five of them hold too little of the tails: its nominal 95 % interval covers
//!   the mean in about 75 % (n = 3) to 84 % (n = 5) of trials. Student's t pays for the unknown
//!   spread with a wider quantile and keeps its promise wherever the noise is roughly normal.
//! - **From [`BOOTSTRAP_LEAST`] on: the expanded percentile bootstrap.** It needs no normal
//!   distribution, which matters for ratios over the points of a surface: they are anything but
//!   normal. The plain percentile bootstrap is still too narrow at ten samples (90 % instead of
//!   95 %), because it ignores the factor n/(n-1) and uses normal where t quantiles belong; so the
//!   percentiles are moved outwards by both (Hesterberg, "What Teachers Should Know About the
//!   Bootstrap", The American Statistician 69(4), 2015, section 4.3).
//!
//! The tests below measure the coverage of both.
//!
//! What kind of number a figure is, and the interval of its mean that follows from it.
//!
//! Student's t draws an interval of the same width on both sides of a mean, also where a figure cannot
//! go: a throughput below zero, an index of fairness above one. Cutting off the impossible part would
//! leave what is worse: figures that end somewhere are skewed, and the symmetric interval then misses
//! the truth more often than it says (three deviations around zero: 92 % instead of 95 %; Jain's
//! index of two machines: 82 %). So the interval is made on a scale without ends, logarithms or
//! log-odds, with the standard error carried over to it (delta method), and mapped back. It lies where
//! the figure can be, contains the mean, and covers the truth as often as it says (tests below).

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use virtbench_record::Estimated;
use virtbench_units::Random;

/// The confidence of every interval of which nothing else is said.
pub const CONFIDENCE: f64 = 0.95;

/// The least number of samples that are bootstrapped.
pub const BOOTSTRAP_LEAST: usize = 10;

/// Resamples of a bootstrap: at ten samples, 34 of them lie beyond each limit.
const RESAMPLES: usize = 4_000;

/// The most values a bootstrap draws in all; very many samples are resampled less often.
const DRAWS_MOST: usize = 4_000_000;

/// A range of values, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Span {
    /// Whether `value` lies inside or on an end.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Both ends mapped by a rising function.
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { low: rising(self.low), high: rising(self.high) }
    }
}

/// How an interval was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Student's t.
    StudentT,
    /// The expanded percentile bootstrap.
    Bootstrap,
}

impl Method {
    /// Its name, as a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StudentT => "Student's t",
            Self::Bootstrap => "expanded percentile bootstrap",
        }
    }
}

/// A mean and how well it is known, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "Estimated")]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Samples behind it.
    pub samples: usize,
    /// Its confidence interval, of 95 % unless asked otherwise, and how it was found; none from a single
    /// sample.
    pub interval: Option<(Span, Method)>,
}

impl Estimate {
    /// The interval without its method.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.interval.map(|(span, _)| span)
    }
}

/// The mean of `samples`, which may have either sign, with its 95 % confidence interval; figures that
/// cannot go everywhere have theirs from [`crate::FigureKind`]. `seed` determines the resampling.
/// Samples that are not finite are no measurements and are passed over; none left is `None`, and a
/// single one has no interval: nothing is known about its spread.
#[must_use]
pub fn mean_interval(samples: &[f64], seed: u64) -> Option<Estimate> {
    mean_interval_at(samples, CONFIDENCE, seed)
}

/// The same with an interval of another confidence, a share between 0 and 1.
#[must_use]
pub fn mean_interval_at(samples: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    let (mean, number, half) = student_half_width(samples, confidence)?;
    let interval = if number < BOOTSTRAP_LEAST {
        half.map(|half| (Span { low: mean - half, high: mean + half }, Method::StudentT))
    } else {
        bootstrap(&finite(samples), confidence, seed).map(|span| (span, Method::Bootstrap))
    };
    Some(Estimate { mean, samples: number, interval })
}

fn finite(samples: &[f64]) -> Vec<f64> {
    samples.iter().copied().filter(|sample| sample.is_finite()).collect()
}

/// The mean of the finite samples, their number, and half the width of Student's interval around it;
/// no width of a single one. `None` without a sample.
pub(crate) fn student_half_width(samples: &[f64], confidence: f64) -> Option<(f64, usize, Option<f64>)> {
    let samples = finite(samples);
    if samples.is_empty() {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let half = || {
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(t_quantile(samples.len(), confidence)? * (variance / n).sqrt())
    };
    Some((mean, samples.len(), if samples.len() > 1 { half() } else { None }))
}

/// The quantile of Student's t beyond which half of what the confidence leaves open lies.
fn t_quantile(samples: usize, confidence: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, (samples - 1) as f64).ok()?;
    Some(distribution.inverse_cdf(0.5 + confidence / 2.0))
}

fn bootstrap(samples: &[f64], confidence: f64, seed: u64) -> Option<Span> {
    let n = samples.len();
    let stretch = (n as f64 / (n as f64 - 1.0)).sqrt();
    let tail = Normal::new(0.0, 1.0).ok()?.cdf(-stretch * t_quantile(n, confidence)?);
    let mut random = Random::new(seed);
    let resamples = RESAMPLES.min(DRAWS_MOST / n).max(1);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| (0..n).map(|_| samples[draw(&mut random, n)]).sum::<f64>() / n as f64)
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    Some(Span { low: percentile(&means, tail), high: percentile(&means, 1.0 - tail) })
}

#[allow(clippy::cast_possible_truncation)] // below n, which is a usize
fn draw(random: &mut Random, n: usize) -> usize {
    random.below(n as u64) as usize
}

/// The value below which `share` of the sorted values lie, interpolated.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to len - 1
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// The middle one of an odd number of values, of an even one the mean of the middle two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) })
}

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

/// Half and double cancel in it. It is not a number of no values; with one that is zero it is zero, with one that is without end it is
/// without end.
pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod kind_tests;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::normal;

    /// In how many of `trials` the interval of `n` normal samples contains their true mean.
    fn coverage(n: usize, trials: u64, interval: impl Fn(&[f64], u64) -> Span) -> f64 {
        let mut random = Random::new(20_031_027);
        let hits = (0..trials).filter(|trial| {
            let samples: Vec<f64> = (0..n).map(|_| 100.0 + 15.0 * normal(&mut random)).collect();
            interval(&samples, *trial).contains(100.0)
        });
        hits.count() as f64 / trials as f64
    }

    #[test]
    fn the_interval_covers_the_mean_in_95_percent_of_trials() {
        for (n, trials) in [(2, 4_000), (3, 4_000), (5, 4_000), (10, 600), (18, 600)] {
            let covered =
                coverage(n, trials, |samples, seed| mean_interval(samples, seed).unwrap().span().unwrap());
            assert!((0.93..0.97).contains(&covered), "n = {n}: {covered}");
        }
    }

    #[test]
    fn a_narrower_interval_covers_it_as_often_as_it_says() {
        for (n, trials) in [(3, 4_000), (10, 600)] {
            let covered = coverage(n, trials, |samples, seed| {
                mean_interval_at(samples, 0.9, seed).unwrap().span().unwrap()
            });
            assert!((0.87..0.93).contains(&covered), "n = {n}: {covered}");
        }
    }

    #[test]
    fn a_bootstrap_of_three_would_not() {
        let covered = coverage(3, 300, bootstrap_plain);
        assert!(covered < 0.85, "{covered}");
    }

    fn bootstrap_plain(samples: &[f64], seed: u64) -> Span {
        let mut random = Random::new(seed);
        let n = samples.len();
        let mut means: Vec<f64> = (0..1_000)
            .map(|_| (0..n).map(|_| samples[draw(&mut random, n)]).sum::<f64>() / n as f64)
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        Span { low: percentile(&means, 0.025), high: percentile(&means, 0.975) }
    }

    #[test]
    fn a_textbook_value() {
        // t(0.975, 2) = 4.30265; s = 1, n = 3.
        let estimate = mean_interval(&[9.0, 10.0, 11.0], 0).unwrap();
        let (span, method) = estimate.interval.unwrap();
        assert_eq!(method, Method::StudentT);
        assert!((span.high - (10.0 + 4.302_652_7 / 3f64.sqrt())).abs() < 1e-5, "{span:?}");
    }

    #[test]
    fn one_sample_has_no_interval_and_none_has_no_mean() {
        assert_eq!(mean_interval(&[], 0), None);
        assert_eq!(mean_interval(&[f64::NAN], 0), None);
        let single = mean_interval(&[4.0, f64::INFINITY], 0).unwrap();
        assert_eq!((single.mean, single.samples, single.interval), (4.0, 1, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_mean_lies_in_its_interval_and_a_seed_repeats_it(
            samples in prop::collection::vec(0.1f64..1e9, 2..30), seed in any::<u64>(),
        ) {
            let estimate = mean_interval(&samples, seed).unwrap();
            let span = estimate.span().unwrap();
            let slack = 1e-9 * estimate.mean.abs();
            prop_assert!(span.low <= estimate.mean + slack && estimate.mean <= span.high + slack);
            prop_assert_eq!(mean_interval(&samples, seed), Some(estimate));
        }
    }
}
