//! One side against another, from repetitions measured in turn: a ratio, or the deviation of [VirtualFence 2013].
//!
//! Repetition i of both sides is measured next to each other, so whatever changes slowly on the
//! host (other guests, a filling write cache, temperature) changes both alike and falls out of
//! their ratio. The ratios are averaged as logarithms: half and double then cancel, and swapping
//! the sides gives the reciprocal. The result is their geometric mean.
//!
//! Performance deviation ([VirtualFence 2013], section 4.1), for simulated and for measured machines alike.
//!
//! `delta = |P_I - P_D| / P_I x 100 %`: performance alone against performance in company, without its sign. The paper
//! shows the mean over experiments with the least and the greatest of them; of several machines an experiment counts with
//! the mean of theirs, `E[delta]`.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::Estimated;

use crate::interval::{CONFIDENCE, Estimate, FigureKind, Span};

/// How many times the reference the subject reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub value: f64,
    /// Its confidence interval, of 95 % unless asked otherwise; none from a single pair.
    pub interval: Option<Span>,
    /// Pairs behind it.
    pub pairs: usize,
    /// Repetitions left out, counted on both sides: their counterpart is missing, or one of the two
    /// moved nothing, which has no logarithm.
    pub unpaired: usize,
}

impl Ratio {
    /// The geometric mean of ratios, each a pair of its own.
    pub(crate) fn average(ratios: &[f64], confidence: f64, seed: u64) -> Option<Self> {
        let estimate = FigureKind::Ratio.estimate_at(ratios, confidence, seed)?;
        let (value, interval) = (estimate.mean, estimate.span());
        Some(Self { value, interval, pairs: estimate.samples, unpaired: 0 })
    }

    /// Whether the interval excludes 1, "no difference"; unknown without an interval.
    #[must_use]
    pub fn excludes_one(&self) -> Option<bool> {
        self.interval.map(|span| !span.contains(1.0))
    }
}

/// The ratio of `subject` to `reference`, both by number of repetition and in the same unit. `None`
/// where no repetition has both sides.
#[must_use]
pub fn paired_ratio(
    reference: &BTreeMap<u32, f64>,
    subject: &BTreeMap<u32, f64>,
    seed: u64,
) -> Option<Ratio> {
    paired_ratio_at(reference, subject, CONFIDENCE, seed)
}

/// The same with an interval of another confidence, a share between 0 and 1.
#[must_use]
pub fn paired_ratio_at(
    reference: &BTreeMap<u32, f64>,
    subject: &BTreeMap<u32, f64>,
    confidence: f64,
    seed: u64,
) -> Option<Ratio> {
    let ratios: Vec<f64> = reference
        .iter()
        .filter_map(|(repetition, below)| Some((subject.get(repetition)?, below)))
        .filter(|(above, below)| **above > 0.0 && **below > 0.0)
        .map(|(above, below)| above / below)
        .collect();
    let ratio = Ratio::average(&ratios, confidence, seed)?;
    Some(Ratio { unpaired: reference.len() + subject.len() - 2 * ratio.pairs, ..ratio })
}

/// `|P_I - P_D| / P_I x 100`: how far performance beside others is from that alone, in percent. Nothing where there was
/// none alone.
#[must_use]
pub fn deviation_percent(alone: f64, beside: f64) -> Option<f64> {
    (alone > 0.0 && beside.is_finite()).then(|| 100.0 * ((alone - beside) / alone).abs())
}

/// A figure that is not below zero, over experiments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OverExperiments {
    /// Mean of the experiments with its interval, of [`FigureKind::Positive`]: on logarithms, from three of them on.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The least and the greatest experiment (the paper's range markers).
    pub range: Span,
}

/// Results of experiments, such as the percent that each deviates by. Values that are not finite are passed over; none
/// left is `None`.
#[must_use]
pub fn over_experiments(values: impl IntoIterator<Item = f64>, seed: u64) -> Option<OverExperiments> {
    let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let estimate = FigureKind::Positive.estimate(&values, seed)?;
    Some(OverExperiments { estimate, range: Span { low, high } })
}

/// The deviation of one machine: its performance alone and beside others in each experiment. Experiments without
/// performance alone are passed over.
#[must_use]
pub fn deviation(experiments: impl IntoIterator<Item = (f64, f64)>, seed: u64) -> Option<OverExperiments> {
    over_experiments(
        experiments.into_iter().filter_map(|(alone, beside)| deviation_percent(alone, beside)),
        seed,
    )
}

impl From<Estimate> for Estimated {
    fn from(estimate: Estimate) -> Self {
        let span = estimate.span();
        Self { value: estimate.mean, low: span.map(|span| span.low), high: span.map(|span| span.high) }
    }
}

impl From<Ratio> for Estimated {
    fn from(ratio: Ratio) -> Self {
        let span = ratio.interval;
        Self { value: ratio.value, low: span.map(|span| span.low), high: span.map(|span| span.high) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use virtbench_units::Random;

    use super::*;
    use crate::test_support::normal;

    fn side(values: &[f64]) -> BTreeMap<u32, f64> {
        (0..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn half_and_double_cancel() {
        let ratio = paired_ratio(&side(&[100.0, 100.0]), &side(&[50.0, 200.0]), 0).unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
        assert_eq!(ratio.excludes_one(), Some(false));
    }

    #[test]
    fn a_disturbance_of_both_sides_falls_out() {
        let ratio = paired_ratio(&side(&[100.0, 20.0, 60.0]), &side(&[50.1, 9.9, 30.0]), 0).unwrap();
        assert!((ratio.value - 0.5).abs() < 0.01);
        assert_eq!(ratio.excludes_one(), Some(true));
    }

    #[test]
    fn one_pair_has_no_interval() {
        let ratio = paired_ratio(&side(&[100.0]), &side(&[50.0]), 0).unwrap();
        assert_eq!((ratio.interval, ratio.excludes_one()), (None, None));
    }

    #[test]
    fn a_repetition_without_its_counterpart_is_left_out() {
        let reference = BTreeMap::from([(0, 100.0), (2, 80.0), (3, 80.0)]);
        let subject = BTreeMap::from([(1, 1.0), (2, 40.0), (3, 0.0)]);
        let ratio = paired_ratio(&reference, &subject, 0).unwrap();
        assert_eq!((ratio.pairs, ratio.unpaired), (1, 4));
        assert!((ratio.value - 0.5).abs() < 1e-12);
        assert_eq!(paired_ratio(&side(&[1.0]), &BTreeMap::from([(1, 1.0)]), 0), None);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_gives_the_reciprocal(
            pairs in prop::collection::vec((1.0f64..1e9, 1.0f64..1e9), 1..6),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let forth = paired_ratio(&side(&a), &side(&b), 0).unwrap();
            let back = paired_ratio(&side(&b), &side(&a), 0).unwrap();
            prop_assert!((forth.value * back.value - 1.0).abs() < 1e-9);
            if let (Some(forth), Some(back)) = (forth.interval, back.interval) {
                prop_assert!((forth.low * back.high - 1.0).abs() < 1e-6);
            }
        }
    }

    /// Three experiments of a machine that is slowed down by so much, alone and beside others with 5 % of chance each.
    #[test]
    fn the_interval_of_three_experiments_holds_the_deviation_in_95_percent_of_trials() {
        for slowed in [0.0, 0.05, 0.2, 3.0] {
            let mut random = Random::new(71);
            let mut experiment = || {
                let mut noise = || (0.05 * normal(&mut random)).exp();
                (100.0 * noise(), 100.0 * (1.0 + slowed) * noise())
            };
            let many = 200_000;
            let all = (0..many)
                .map(|_| experiment())
                .filter_map(|(alone, beside)| deviation_percent(alone, beside));
            let truth = all.sum::<f64>() / f64::from(many);
            let trials = 8_000;
            let held = (0..trials).filter(|_| {
                let experiments = [experiment(), experiment(), experiment()];
                deviation(experiments, 1).unwrap().estimate.span().unwrap().contains(truth)
            });
            let share = held.count() as f64 / f64::from(trials);
            assert!((0.935..0.965).contains(&share), "{slowed}: {share}");
        }
    }

    #[test]
    fn deviation_is_defined_as_in_the_paper() {
        // Section 7.1: Fileserver's accesses take 19 ms alone and 98 ms beside three others.
        assert!((deviation_percent(19.0, 98.0).unwrap() - 415.789).abs() < 1e-3);
        assert_eq!(deviation_percent(200.0, 150.0), Some(25.0));
        assert_eq!(deviation_percent(200.0, 250.0), Some(25.0), "without its sign");
        assert_eq!(deviation_percent(0.0, 1.0), None);
    }

    /// A machine that is slower in one experiment and faster in the next deviates in both.
    #[test]
    fn experiments_to_either_side_do_not_cancel() {
        let both = deviation([(100.0, 90.0), (100.0, 110.0), (100.0, 106.0)], 1).unwrap();
        assert!((both.estimate.mean - 26.0 / 3.0).abs() < 1e-9, "{both:?}");
        assert!((both.range.low - 6.0).abs() < 1e-9 && (both.range.high - 10.0).abs() < 1e-9);
        assert!(both.estimate.span().unwrap().low >= 0.0);
        let wide = deviation([(100.0, 100.0), (100.0, 130.0), (100.0, 103.0)], 1).unwrap();
        assert!(wide.estimate.span().unwrap().low > 0.0, "no deviation lies below zero: {wide:?}");
        let two = deviation([(100.0, 100.0), (100.0, 130.0)], 1).unwrap();
        assert_eq!(two.estimate.span(), None, "two experiments are too few");
        assert_eq!(deviation([(0.0, 1.0)], 1), None);
    }
}
