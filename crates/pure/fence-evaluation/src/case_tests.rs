use super::*;

/// The same accesses a second alone and other ones in company, in each experiment.
fn deviated(alone: f64, together: &[f64]) -> Compared {
    let sample = |per_second: f64| Sample { per_second, mean_ms: 1e3 / per_second, p99_ms: 2e3 / per_second };
    let alone = vec![sample(alone); together.len()];
    let together: Vec<Sample> = together.iter().copied().map(sample).collect();
    compare(&alone, &together, 1).unwrap()
}

/// [VirtualFence 2013], section 4.1: delta has no sign, and what is shown is the mean over experiments.
#[test]
fn a_machine_now_slower_now_faster_deviates_in_both_experiments() {
    let deviation = deviated(100.0, &[90.0, 110.0, 106.0]).throughput_deviation;
    assert!((deviation.estimate.mean - 26.0 / 3.0).abs() < 1e-9, "{deviation:?}");
    assert!((deviation.range.low - 6.0).abs() < 1e-9 && (deviation.range.high - 10.0).abs() < 1e-9);
    assert!(deviation.estimate.span().unwrap().low >= 0.0);
}
