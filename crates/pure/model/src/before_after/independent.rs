//! A ratio of two sides that were not measured in turn: repetitions have no counterpart on the other side.
//!
//! Both sides are taken as logarithms, so that half and double cancel, and their means are compared by Welch's test (B. L.
//! Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are Involved", Biometrika
//! 34, 1947): the spread of each side is its own. The mean of several such ratios has the sum of their variances, with
//! Satterthwaite's degrees of freedom.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Span;

/// A difference of means of logarithms, with what is known of its variance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LogRatio {
    value: f64,
    /// Variance of the mean and degrees of freedom of each part; none where a side has one sample only.
    parts: Option<Vec<(f64, f64)>>,
}

impl LogRatio {
    /// That of `after` to `before`. What is not above zero has no logarithm and is left out; a side without samples has no
    /// ratio.
    pub(super) fn new(before: &[f64], after: &[f64]) -> Option<Self> {
        let sides = [Side::new(before)?, Side::new(after)?];
        let parts = sides.iter().map(Side::part).collect();
        Some(Self { value: sides[1].mean - sides[0].mean, parts })
    }

    /// The mean of several.
    pub(super) fn mean(all: &[Self]) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let number = all.len() as f64;
        let value = all.iter().map(|one| one.value).sum::<f64>() / number;
        let parts: Option<Vec<&Vec<(f64, f64)>>> = all.iter().map(|one| one.parts.as_ref()).collect();
        let scaled = |(variance, freedom): &(f64, f64)| (variance / number.powi(2), *freedom);
        let parts = parts.map(|parts| parts.into_iter().flatten().map(scaled).collect());
        Some(Self { value, parts })
    }

    /// How many times the one before the one after is.
    pub(super) fn ratio(&self) -> f64 {
        self.value.exp()
    }

    /// Its interval of a confidence between 0 and 1.
    pub(super) fn interval(&self, confidence: f64) -> Option<Span> {
        let parts = self.parts.as_ref()?;
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        let half = if variance > 0.0 {
            let squares: f64 = parts.iter().map(|(variance, freedom)| variance.powi(2) / freedom).sum();
            let distribution = StudentsT::new(0.0, 1.0, variance.powi(2) / squares).ok()?;
            distribution.inverse_cdf(0.5 + confidence / 2.0) * variance.sqrt()
        } else {
            0.0
        };
        Some(Span { low: (self.value - half).exp(), high: (self.value + half).exp() })
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
        let logarithms: Vec<f64> = samples
            .iter()
            .filter(|sample| sample.is_finite() && **sample > 0.0)
            .map(|sample| sample.ln())
            .collect();
        let number = logarithms.len();
        if number == 0 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use virtbench_units::Random;

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
}
