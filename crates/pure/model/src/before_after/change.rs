//! How a quantity changed, and what follows: ratios of sides that were not measured in turn, held against how much
//! comparable runs of the past differ.
//!
//! Both sides are taken as logarithms, so that half and double cancel, and their means are compared by Welch's test (B. L.
//! Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are Involved", Biometrika
//! 34, 1947): the spread of each side is its own. The mean of several such ratios has the sum of their variances, with
//! Satterthwaite's degrees of freedom.
//!
//! What completed nothing has no logarithm. It is not left out: it decides by itself ([`Sides`]).
//!
//! The repetitions of one run share what is peculiar to it: where its file lies, what else the host does that hour. Their spread
//! says nothing of that, so two runs of one configuration seem to differ more often than an interval promises.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use virtbench_record::{Better, PointKey};

use crate::interval::Span;
use crate::pairwise::{Margin, VERDICT_CONFIDENCE};
use crate::quantity::{Direction, Quantity, is_worst};

/// How a quantity changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// What was compared.
    pub quantity: Quantity,
    /// After as a multiple of before; of points, the geometric mean. Infinite or not a number where before nothing was completed.
    pub ratio: f64,
    /// Its lower and upper end at 90 % confidence; none where a side was measured once, or completed nothing.
    pub interval: Option<[f64; 2]>,
    /// What follows for this change by itself, wrong with a probability of at most 5 %. Without an interval it is read from
    /// the ratio alone.
    pub verdict: Direction,
    /// Whether it is worse even when it is allowed for that many changes were looked at: all such changes of two runs
    /// together are false with a probability of at most 5 %.
    pub regression: bool,
}

impl Change {
    /// What became of a quantity among these changes.
    #[must_use]
    pub fn find(changes: &[Self], quantity: Quantity) -> Option<&Self> {
        changes.iter().find(|change| change.quantity == quantity)
    }

    /// What follows from a ratio; `careful` is the confidence that allows for how much is looked at.
    pub(super) fn of_ratio(quantity: Quantity, ratio: &LogRatio, margin: Margin, careful: f64) -> Self {
        let value = ratio.ratio();
        let judged = |span: Option<Span>| {
            let span = span.unwrap_or(Span { low: value, high: value });
            Direction::of(margin.finding(span), quantity.better())
        };
        let interval = ratio.interval(VERDICT_CONFIDENCE);
        let careful = ratio.interval(careful);
        Self {
            quantity,
            ratio: value,
            interval: interval.map(|span| [span.low, span.high]),
            verdict: judged(interval),
            regression: careful.is_some() && judged(careful) == Direction::Worse,
        }
    }

    /// What follows from the repetitions of two sides.
    pub(super) fn of_sides(quantity: Quantity, sides: &Sides, margin: Margin, careful: f64) -> Self {
        let idle = |ratio: f64, verdict: Direction| Self {
            quantity,
            ratio,
            interval: None,
            verdict,
            regression: verdict == Direction::Worse,
        };
        match sides {
            Sides::Ratio(ratio) => Self::of_ratio(quantity, ratio, margin, careful),
            Sides::Stopped => idle(quantity.worst(), Direction::Worse),
            Sides::Began => idle(1.0 / quantity.worst(), Direction::Better),
            Sides::Neither => idle(f64::NAN, Direction::Undecided),
        }
    }

    /// Whether the side after completed nothing.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.verdict == Direction::Worse && self.ratio == self.quantity.worst()
    }

    /// Whether it was judged by more than single values.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.interval.is_some() || self.is_stopped()
    }

    /// The same figures, of which nothing follows.
    pub(super) fn withheld(self) -> Self {
        if self.is_stopped() {
            return self;
        }
        Self { verdict: Direction::Undecided, regression: false, ..self }
    }
}

/// A difference of means of logarithms, with what is known of its variance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogRatio {
    value: f64,
    /// Variance of the mean and degrees of freedom of each part; none where a side has one sample only.
    parts: Option<Vec<(f64, f64)>>,
}

/// What the repetitions of two sides come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sides {
    /// Both completed something in every repetition.
    Ratio(LogRatio),
    /// The side after completed nothing in a repetition, or in more of them than can be left to chance: the worst there is.
    Stopped,
    /// The side before completed nothing in a repetition, the one after always did.
    Began,
    /// Repetitions of both completed nothing: nothing follows.
    Neither,
}

impl Sides {
    /// What follows from the values of both sides; nothing where one has none.
    pub(super) fn new(better: Better, sides: [&[f64]; 2]) -> Option<Self> {
        let idle = sides.map(|values| values.iter().filter(|value| is_worst(**value, better)).count());
        let [before, after] = [0, 1].map(|side| (idle[side], sides[side].len()));
        if before.1 == 0 || after.1 == 0 {
            return None;
        }
        Some(match (before.0, after.0) {
            (0, 0) => Self::Ratio(LogRatio::new(sides[0], sides[1])?),
            (0, _) => Self::Stopped,
            (some, all) if all == after.1 && some < before.1 => Self::Stopped,
            (_, 0) => Self::Began,
            _ => Self::Neither,
        })
    }
}

impl LogRatio {
    /// That of `after` to `before`. A side without samples has no ratio, nor has one with a sample that has no logarithm.
    pub(crate) fn new(before: &[f64], after: &[f64]) -> Option<Self> {
        let sides = [Side::new(before)?, Side::new(after)?];
        let parts = sides.iter().map(Side::part).collect();
        Some(Self { value: sides[1].mean - sides[0].mean, parts })
    }

    /// The mean of several. Those without an interval are left out where others have one: a point that was measured once does not
    /// take away what the others tell.
    pub(super) fn mean(all: &[Self]) -> Option<Self> {
        let told: Vec<&Self> = all.iter().filter(|one| one.parts.is_some()).collect();
        let of: Vec<&Self> = if told.is_empty() { all.iter().collect() } else { told };
        if of.is_empty() {
            return None;
        }
        let number = of.len() as f64;
        let value = of.iter().map(|one| one.value).sum::<f64>() / number;
        let parts: Option<Vec<&Vec<(f64, f64)>>> = of.iter().map(|one| one.parts.as_ref()).collect();
        let scaled = |(variance, freedom): &(f64, f64)| (variance / number.powi(2), *freedom);
        let parts = parts.map(|parts| parts.into_iter().flatten().map(scaled).collect());
        Some(Self { value, parts })
    }

    /// The same ratio with this variance and its degrees of freedom, if that makes its interval wider.
    pub(super) fn at_least(self, variance: f64, freedom: f64) -> Self {
        let other = Self { value: self.value, parts: Some(vec![(variance, freedom)]) };
        let half = |one: &Self| one.half(0.9);
        if half(&self) >= half(&other) { self } else { other }
    }

    /// How many times the one before the one after is.
    pub(crate) fn ratio(&self) -> f64 {
        self.value.exp()
    }

    /// Its interval of a confidence between 0 and 1.
    pub(crate) fn interval(&self, confidence: f64) -> Option<Span> {
        let half = self.half(confidence)?;
        Some(Span { low: (self.value - half).exp(), high: (self.value + half).exp() })
    }

    /// Half its interval's width, as a logarithm.
    fn half(&self, confidence: f64) -> Option<f64> {
        let parts = self.parts.as_ref()?;
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        if variance <= 0.0 {
            return Some(0.0);
        }
        let squares: f64 = parts.iter().map(|(variance, freedom)| variance.powi(2) / freedom).sum();
        let distribution = StudentsT::new(0.0, 1.0, variance.powi(2) / squares).ok()?;
        Some(distribution.inverse_cdf(0.5 + confidence / 2.0) * variance.sqrt())
    }
}

/// The logarithms of one side.
struct Side {
    mean: f64,
    number: usize,
    variance: Option<f64>,
}

impl Side {
    fn new(samples: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = samples.iter().map(|sample| sample.ln()).collect();
        let number = logarithms.len();
        if number == 0 || !logarithms.iter().all(|one| one.is_finite()) {
            return None;
        }
        let mean = logarithms.iter().sum::<f64>() / number as f64;
        let squares =
            || logarithms.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (number as f64 - 1.0);
        Some(Self { mean, number, variance: (number > 1).then(squares) })
    }

    /// The variance of its mean, and its degrees of freedom.
    fn part(&self) -> Option<(f64, f64)> {
        Some((self.variance? / self.number as f64, self.number as f64 - 1.0))
    }
}

/// The spread of single runs around their level.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BetweenRuns {
    /// Comparable runs behind it.
    pub runs: usize,
    /// For each environment, point (all of them where there is none) and quantity: the variance of a run's mean, as a logarithm,
    /// and its degrees of freedom.
    pub spreads: BTreeMap<(String, Option<PointKey>, Quantity), (f64, f64)>,
}

impl BetweenRuns {
    /// The variance of the ratio of two sides of so many runs, and its degrees of freedom.
    pub(super) fn of_ratio(
        &self,
        environment: &str,
        point: Option<PointKey>,
        quantity: Quantity,
        runs: [usize; 2],
    ) -> Option<(f64, f64)> {
        let (variance, freedom) = *self.spreads.get(&(environment.to_owned(), point, quantity))?;
        let [before, after] = runs.map(|runs| runs.max(1) as f64);
        Some((variance * (1.0 / before + 1.0 / after), freedom))
    }
}

#[cfg(test)]
mod tests {
    use virtbench_units::Random;

    use super::*;
    use crate::test_support::normal;

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut random = Random::new(9);
        for (before, after, spread) in [(3, 3, [0.05, 0.05]), (3, 5, [0.02, 0.2]), (10, 4, [0.1, 0.1])] {
            let trials = 4_000;
            let mut draw = |number: usize, spread: f64| -> Vec<f64> {
                (0..number).map(|_| 100.0 * (spread * normal(&mut random)).exp()).collect()
            };
            let holds = (0..trials).filter(|_| {
                let ratio = LogRatio::new(&draw(before, spread[0]), &draw(after, spread[1])).unwrap();
                ratio.interval(0.9).unwrap().contains(1.0)
            });
            let share = holds.count() as f64 / f64::from(trials);
            assert!((0.87..0.95).contains(&share), "{before} and {after}: {share}");
        }
    }

    #[test]
    fn a_single_sample_has_a_ratio_and_no_interval() {
        let ratio = LogRatio::new(&[100.0], &[50.0, 50.0]).unwrap();
        assert!((ratio.ratio() - 0.5).abs() < 1e-12 && ratio.interval(0.9).is_none());
        assert_eq!(LogRatio::new(&[], &[1.0]), None);
        assert_eq!(LogRatio::new(&[0.0], &[1.0]), None);
        let mean = LogRatio::mean(&[ratio.clone(), LogRatio::new(&[1.0], &[2.0]).unwrap()]).unwrap();
        assert!((mean.ratio() - 1.0).abs() < 1e-12 && mean.interval(0.9).is_none());
    }

    #[test]
    fn one_that_was_measured_once_takes_no_interval_from_the_others() {
        let told = LogRatio::new(&[100.0, 101.0], &[50.0, 51.0]).unwrap();
        let mean = LogRatio::mean(&[told.clone(), LogRatio::new(&[1.0], &[9.0]).unwrap()]).unwrap();
        assert_eq!(mean, LogRatio::mean(&[told]).unwrap());
        assert!(mean.interval(0.9).is_some());
    }

    #[test]
    fn a_known_spread_widens_an_interval_and_never_narrows_it() {
        let ratio = LogRatio::new(&[100.0, 101.0, 102.0], &[100.0, 101.0, 102.0]).unwrap();
        let own = ratio.interval(0.9).unwrap();
        let wider = ratio.clone().at_least(0.01, 8.0).interval(0.9).unwrap();
        assert!(wider.low < own.low && (wider.high - (0.1_f64 * 1.859_548).exp()).abs() < 1e-6, "{wider:?}");
        assert_eq!(ratio.clone().at_least(1e-9, 8.0), ratio);
        let single = LogRatio::new(&[1.0], &[1.0]).unwrap().at_least(0.01, 8.0);
        assert!(single.interval(0.9).is_some());
    }

    #[test]
    fn a_side_that_did_nothing_is_the_worst_there_is() {
        let (live, idle, some) = ([5.0, 6.0], [0.0, 0.0], [5.0, 0.0]);
        let sides = |before: &[f64], after: &[f64]| Sides::new(Better::Higher, [before, after]);
        assert!(matches!(sides(&live, &live), Some(Sides::Ratio(_))));
        assert_eq!(sides(&live, &idle), Some(Sides::Stopped));
        assert_eq!(sides(&live, &some), Some(Sides::Stopped));
        assert_eq!(sides(&some, &idle), Some(Sides::Stopped));
        assert_eq!(sides(&idle, &live), Some(Sides::Began));
        assert_eq!(sides(&some, &live), Some(Sides::Began));
        for (before, after) in [(&idle, &idle), (&some, &some), (&idle, &some)] {
            assert_eq!(sides(before, after), Some(Sides::Neither));
        }
        assert_eq!((sides(&[], &live), sides(&live, &[])), (None, None));
        let endless = [f64::INFINITY];
        assert_eq!(Sides::new(Better::Lower, [&live, &endless]), Some(Sides::Stopped));
    }
}
