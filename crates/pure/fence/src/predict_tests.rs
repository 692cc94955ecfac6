#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small figures of a test

use super::*;
use proptest::prelude::*;
use virtbench_units::Random;

const SPAN: u64 = 160_000_000_000;

fn curve_ns(distance: u64) -> u64 {
    let f = distance as f64 / SPAN as f64;
    (1e6 + 15e6 * f.sqrt() + 6e6 * f) as u64
}

fn sample(random: &mut Random, rotation: bool) -> SlowSample {
    let mut offsets: Vec<u64> = (0..1 + random.below(99)).map(|_| random.below(SPAN)).collect();
    offsets.sort_unstable();
    let mut at = 0;
    let distances_bytes: Vec<u64> = offsets.iter().map(|&o| o - std::mem::replace(&mut at, o)).collect();
    let turn = |random: &mut Random| if rotation { random.below(8_333_333) } else { 0 };
    let service_ns = distances_bytes.iter().map(|&d| curve_ns(d) + turn(random)).sum();
    SlowSample { distances_bytes, service_ns }
}

#[test]
fn a_disk_without_rotation_is_predicted_within_a_hundredth() {
    let mut random = Random::new(1);
    let samples: Vec<_> = (0..4000).map(|_| sample(&mut random, false)).collect();
    let fitted = fit_slow(&samples, 12, 0).unwrap();
    for (error, sample) in fitted.errors_ns.iter().zip(samples.iter().skip(1).step_by(2)) {
        assert!(
            error.unsigned_abs() < 1_000_000 + sample.service_ns / 50,
            "{error} of {}",
            sample.service_ns
        );
    }
}

#[test]
fn uniform_rotation_leaves_an_error_no_curve_can_explain() {
    let mut random = Random::new(2);
    let samples: Vec<_> = (0..4000).map(|_| sample(&mut random, true)).collect();
    let fitted = fit_slow(&samples, 8, 0).unwrap();
    let mean = fitted.errors_ns.iter().sum::<i64>() as f64 / fitted.errors_ns.len() as f64;
    assert!(mean.abs() < 2e6, "biased by {mean} ns");
    let within = fitted.share_within(5_000_000);
    assert!((0.2..0.5).contains(&within), "{within} within 5 ms");
}

#[test]
fn erase_stalls_do_not_lift_the_line() {
    let mut random = Random::new(3);
    let mut draw = || {
        let count = 1 + random.below(97) as usize;
        let stall = if random.below(100) < 17 { 3_500_000 } else { 0 };
        FastSample { count, service_ns: 30_000 + 396_000 * count as u64 + stall + random.below(2000) }
    };
    let samples: Vec<_> = (0..2000).map(|_| draw()).collect();
    let fitted = fit_fast(&samples).unwrap();
    assert!((fitted.predictor.per_io_ns - 396_000.0).abs() < 400.0, "{:?}", fitted.predictor);
    assert!((0.80..0.86).contains(&fitted.share_within(250_000)), "{}", fitted.share_within(250_000));
}

#[test]
fn batches_that_tell_nothing_are_refused() {
    let alike = vec![FastSample { count: 4, service_ns: 100 }; 100];
    assert_eq!(fit_fast(&alike).unwrap_err(), FitError::Degenerate);
    assert_eq!(fit_fast(&alike[..2]).unwrap_err(), FitError::TooFew { samples: 2, unknowns: 2 });
    assert!(matches!(fit_slow(&[], 8, 0), Err(FitError::TooFew { .. })));
}

proptest! {
    #[test]
    fn the_largest_batch_fits_and_one_more_does_not(
        base_ns in 0.0..1e6, per_io_ns in 1.0..1e6, remaining in 0u64..100_000_000, most in 0usize..500,
    ) {
        let line = FastPredictor { base_ns, per_io_ns };
        let count = line.largest(remaining, most);
        prop_assert!(count <= most && line.batch_ns(count) <= remaining + 1);
        prop_assert!(count == most || line.batch_ns(count + 1) + 1 >= remaining);
    }
}
