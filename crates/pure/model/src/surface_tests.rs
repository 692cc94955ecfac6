//! Comparisons of small hand-written runs.

use virtbench_record::{ClockCheck, PointStatus};

use super::*;
use crate::test_support::{good, measured, record};

const KEY: PointKey = PointKey { block_bytes: 4096, read_percent: 100, random_percent: 0 };

fn random(percent: u8) -> PointKey {
    PointKey { random_percent: percent, ..KEY }
}

#[test]
fn figures_ratios_and_costs() {
    let records = [
        good(KEY, "native", 0, 1_000.0, 10.0),
        good(KEY, "vm", 0, 500.0, 20.0),
        good(KEY, "native", 1, 2_000.0, 20.0),
        good(KEY, "vm", 1, 1_000.0, 40.0),
        good(KEY, "elsewhere", 0, 9_000.0, 1.0),
    ];
    let comparison = compare(&records, "native", "vm", 1);
    let [point] = comparison.points.as_slice() else { panic!("{comparison:?}") };
    assert_eq!(point.reference.iops.unwrap().mean, 1_500.0);
    assert_eq!(point.reference.throughput.unwrap().mean, 1_500.0 * 4096.0);
    assert_eq!(point.subject.iops_per_cpu_percent(), Some(25.0));
    assert!((point.ratio.unwrap().value - 0.5).abs() < 1e-12);
    assert!((comparison.cpu_per_io.unwrap().value - 4.0).abs() < 1e-12);
    assert_eq!(comparison.cpu_per_io.unwrap().interval, None);
}

#[test]
fn the_curve_ascends_and_its_summary_counts() {
    let mut records = Vec::new();
    for (percent, share) in [(0, 0.9), (50, 0.3), (100, 0.6)] {
        for repetition in 0..3 {
            let wobble = 1.0 + 0.001 * f64::from(repetition);
            records.push(good(random(percent), "native", repetition, 1_000.0, 10.0));
            records.push(good(random(percent), "vm", repetition, 1_000.0 * share * wobble, 10.0));
        }
    }
    records.push(good(random(75), "native", 0, 1_000.0, 10.0));
    let comparison = compare(&records, "native", "vm", 1);
    assert_eq!(comparison.points.len(), 4);
    let order: Vec<u8> = comparison.curve.iter().map(|point| point.key.random_percent).collect();
    assert_eq!(order, [50, 100, 0]);
    let summary = comparison.summary.unwrap();
    assert_eq!((summary.min.key, summary.max.key), (random(50), random(0)));
    assert!((summary.mean.value - (0.9f64 * 0.3 * 0.6).cbrt()).abs() < 0.01, "a geometric mean");
    assert_eq!((summary.slower, summary.faster, summary.undecided, summary.without_interval), (3, 0, 0, 0));
}

#[test]
fn means_over_points_have_possible_intervals_and_two_points_none() {
    let run = |shares: &[(u8, f64)]| {
        let records: Vec<PointRecord> = shares
            .iter()
            .flat_map(|(percent, share)| {
                [
                    good(random(*percent), "native", 0, 1_000.0, 10.0),
                    good(random(*percent), "vm", 0, 1_000.0 * share, 10.0),
                ]
            })
            .collect();
        compare(&records, "native", "vm", 1).summary.unwrap().mean
    };
    let two = run(&[(0, 0.22), (100, 0.45)]);
    assert_eq!((two.pairs, two.interval), (2, None));
    let span = run(&[(0, 0.05), (50, 0.9), (100, 0.2)]).interval.unwrap();
    assert!(span.low > 0.0 && span.high.is_finite(), "{span:?}");
}

#[test]
fn what_went_wrong_is_carried() {
    let mut bad = measured(100.0, 5.0);
    bad.clock = Some(ClockCheck { drift_ppm: 50_000.0, uncertainty_ppm: 10.0 });
    bad.outcome.errors = 7;
    bad.outcome.interrupted = true;
    let unavailable = || PointStatus::Unavailable { why: "the guest stopped".into() };
    let records = [
        record(KEY, "vm", 0, PointStatus::Measured(Box::new(bad))),
        record(KEY, "vm", 1, unavailable()),
        record(KEY, "vm", 2, unavailable()),
    ];
    let comparison = compare(&records, "native", "vm", 1);
    let side = &comparison.points[0].subject;
    assert_eq!((side.repetitions, side.errors, side.suspect_clocks, side.interrupted), (1, 7, 1, 1));
    assert_eq!(side.unavailable, ["the guest stopped"]);
    assert_eq!((comparison.points[0].ratio, comparison.summary), (None, None));
}

#[test]
fn a_later_record_of_the_same_repetition_counts() {
    let records = [
        record(KEY, "native", 0, PointStatus::Unavailable { why: "busy".into() }),
        good(KEY, "native", 0, 100.0, 1.0),
    ];
    let comparison = compare(&records, "native", "vm", 1);
    let side = &comparison.points[0].reference;
    assert_eq!((side.repetitions, side.unavailable.len()), (1, 0));
}

#[test]
fn no_cpu_use_is_no_infinite_efficiency() {
    let comparison = compare(&[good(KEY, "native", 0, 100.0, 0.0)], "native", "vm", 1);
    assert_eq!(comparison.points[0].reference.iops_per_cpu_percent(), None);
}

#[test]
fn an_empty_run_is_an_empty_comparison() {
    assert_eq!(compare(&[], "native", "vm", 1), Comparison::default());
}
