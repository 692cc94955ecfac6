//! How often the intervals of each kind hold the truth, and that they never leave what it can be.

use proptest::prelude::*;
use virtbench_units::Random;

use super::*;
use crate::test_support::normal;
use crate::together::{jain, worst_to_best};

/// In what share of `trials` the interval of `n` draws holds the mean of very many.
fn coverage(kind: FigureKind, n: usize, trials: u32, mut draw: impl FnMut(&mut Random) -> f64) -> f64 {
    let mut random = Random::new(20_261_122);
    let many = 400_000;
    let truth = (0..many).map(|_| draw(&mut random)).sum::<f64>() / f64::from(many);
    let hits = (0..trials).filter(|_| {
        let samples: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
        kind.estimate(&samples, 0).unwrap().span().unwrap().contains(truth)
    });
    hits.count() as f64 / f64::from(trials)
}

#[test]
fn intervals_of_an_absolute_deviation_hold_it_in_95_percent_of_trials_from_three_repetitions() {
    // |delta| of a VM whose true change is so many standard deviations of chance.
    for change in [0.0, 0.5, 1.0, 2.0, 5.0] {
        for n in [3, 5, 12] {
            let deviation = |random: &mut Random| (change + normal(random)).abs();
            let covered = coverage(FigureKind::Positive, n, 8_000, deviation);
            assert!((0.935..0.965).contains(&covered), "{change} sigmas, n = {n}: {covered}");
        }
    }
}

#[test]
fn intervals_of_rates_and_times_hold_the_mean_in_95_percent_of_trials() {
    for spread in [0.02, 0.15, 0.3] {
        for n in [3, 5, 12] {
            let rate = |random: &mut Random| (spread * normal(random)).exp();
            let covered = coverage(FigureKind::Positive, n, 8_000, rate);
            assert!((0.935..0.965).contains(&covered), "spread {spread}, n = {n}: {covered}");
        }
    }
}

/// What two to eight machines get, with so much chance in it.
fn shares(vms: usize, spread: f64, random: &mut Random) -> Vec<f64> {
    (0..vms).map(|_| (spread * normal(random)).exp()).collect()
}

#[test]
fn intervals_of_fairness_hold_it_in_nine_of_ten_trials_and_more() {
    // Two machines that share evenly but for chance are the worst case: the index has one end at 1.
    for (vms, spread) in [(2, 0.02), (2, 0.5), (4, 0.1), (8, 1.0)] {
        for n in [3, 5, 12] {
            let members = FigureKind::Fairness { members: vms };
            let index = coverage(members, n, 4_000, |random| jain(&shares(vms, spread, random)).unwrap());
            assert!((0.9..0.97).contains(&index), "Jain's index of {vms}, {spread}, n = {n}: {index}");
            let share = coverage(FigureKind::Share, n, 4_000, |random| {
                worst_to_best(&shares(vms, spread, random)).unwrap()
            });
            assert!((0.92..0.97).contains(&share), "worst to best of {vms}, {spread}, n = {n}: {share}");
        }
    }
}

#[test]
fn equal_samples_have_an_interval_of_no_width() {
    for kind in [FigureKind::Positive, FigureKind::Share, FigureKind::Fairness { members: 3 }] {
        let estimate = kind.estimate(&[1.0, 1.0, 1.0], 0).unwrap();
        assert_eq!(estimate.span(), Some(Span { low: 1.0, high: 1.0 }), "{kind:?}");
    }
    let none = FigureKind::Positive.estimate(&[0.0, 0.0, 0.0], 0).unwrap();
    assert_eq!(none.span(), Some(Span { low: 0.0, high: 0.0 }));
}

#[test]
fn two_samples_are_too_few_for_an_interval() {
    for kind in [FigureKind::Positive, FigureKind::Share, FigureKind::Fairness { members: 3 }] {
        let estimate = kind.estimate(&[0.5, 0.9], 0).unwrap();
        assert_eq!((estimate.samples, estimate.interval), (2, None), "{kind:?}");
    }
}

#[test]
fn a_geometric_mean_lets_half_and_double_cancel() {
    let estimate = FigureKind::Ratio.estimate(&[0.5, 2.0, 0.0], 0).unwrap();
    assert!((estimate.mean - 1.0).abs() < 1e-12 && estimate.samples == 2);
}

proptest! {
    #[test]
    fn no_interval_leaves_what_its_figure_can_be(
        samples in prop::collection::vec(0.0f64..=1.0, 2..14), scale in 1e-3f64..1e9, seed in any::<u64>(),
    ) {
        let kinds = [
            (FigureKind::Positive, scale, 0.0, f64::MAX),
            (FigureKind::Ratio, scale, 0.0, f64::MAX),
            (FigureKind::Share, 1.0, 0.0, 1.0),
            (FigureKind::Fairness { members: 2 }, 0.5, 0.5, 1.0),
        ];
        for (kind, scale, least, most) in kinds {
            let offset = if matches!(kind, FigureKind::Fairness { .. }) { 0.5 } else { 0.0 };
            let samples: Vec<f64> = samples.iter().map(|sample| offset + scale * sample).collect();
            let Some(estimate) = kind.estimate(&samples, seed) else { continue };
            let Some(span) = estimate.span() else { continue };
            let slack = 1e-9 * estimate.mean;
            prop_assert!(least <= span.low && span.high <= most, "{kind:?} {samples:?}: {span:?}");
            prop_assert!(
                span.low <= estimate.mean + slack && estimate.mean <= span.high + slack, "{kind:?}: {estimate:?}"
            );
        }
    }
}
