//! One side against another, from repetitions measured in turn.
//!
//! Repetition i of both sides is measured next to each other, so whatever changes slowly on the
//! host (other guests, a filling write cache, temperature) changes both alike and falls out of
//! their ratio. The ratios are averaged as logarithms: half and double then cancel, and swapping
//! the sides gives the reciprocal. The result is their geometric mean.

use std::collections::BTreeMap;

use crate::interval::{CONFIDENCE, Span};
use crate::kind::FigureKind;

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
