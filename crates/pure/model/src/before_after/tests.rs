//! Runs of made-up figures, before and after.

use virtbench_record::{GridPlan, Plan};
use virtbench_units::Random;

use super::*;
use crate::test_support::{good, normal, provenance};

fn run() -> Provenance {
    let plan = GridPlan {
        grid: "g".into(),
        blocks_bytes: vec![4096],
        read_percents: vec![100],
        random_percents: vec![0],
        repetitions: 3,
        outstanding: 1,
        workers: 1,
        ramp_ns: 0,
        time_ns: 1,
        size_bytes: 1 << 20,
        environments: vec!["native".into(), "vm".into()],
        seed: 1,
    };
    provenance(Plan::NativeVsVm(plan), 2, 1)
}

fn key(point: u8) -> PointKey {
    PointKey { block_bytes: 4096, read_percent: 100, random_percent: point }
}

/// `points` of two environments; the VM does `factor` of what it should, all with this spread.
fn records(random: &mut Random, points: u8, repetitions: u32, factor: f64, spread: f64) -> Vec<PointRecord> {
    let mut all = Vec::new();
    for point in 0..points {
        for repetition in 0..repetitions {
            for (environment, factor) in [("native", 1.0), ("vm", 0.4 * factor)] {
                let iops = 10_000.0 * factor * (spread * normal(random)).exp();
                all.push(good(key(point), environment, repetition, iops, 50.0));
            }
        }
    }
    all
}

fn compared(before: &[PointRecord], after: &[PointRecord]) -> BeforeAfter {
    before_after([(&run(), before), (&run(), after)], Margin::default())
}

/// How many of `trials` are called a regression.
fn called_worse(trials: u32, points: u8, repetitions: u32, factor: f64, spread: f64) -> f64 {
    let mut random = Random::new(18);
    let worse = (0..trials).filter(|_| {
        let before = records(&mut random, points, repetitions, 1.0, spread);
        let after = records(&mut random, points, repetitions, factor, spread);
        compared(&before, &after).is_regression()
    });
    worse.count() as f64 / f64::from(trials)
}

#[test]
fn false_regressions_are_as_rare_as_promised_and_true_ones_are_found() {
    let unchanged = called_worse(1_000, 18, 3, 1.0, 0.05);
    // The worst case: exactly at the margin.
    let at_margin = called_worse(1_000, 18, 3, 1.0 / 1.05, 0.05);
    println!("called worse: {unchanged} where nothing changed, {at_margin} at the margin");
    assert!(unchanged <= 0.01 && at_margin <= 0.06, "{unchanged}, {at_margin}");
    assert!(called_worse(100, 18, 3, 0.85, 0.05) >= 0.95, "15 % slower");
    assert!(called_worse(100, 1, 5, 0.5, 0.03) >= 0.95, "half as fast at a single point");
}

#[test]
fn each_environment_is_judged_overall_and_point_by_point() {
    let mut random = Random::new(1);
    let (before, after) = (records(&mut random, 4, 5, 1.0, 0.005), records(&mut random, 4, 5, 0.8, 0.005));
    let compared = compared(&before, &after);
    let [native, vm] = compared.environments.as_slice() else { panic!("{compared:?}") };
    assert_eq!((native.name.as_str(), vm.name.as_str()), ("native", "vm"));
    let overall = |environment: &ChangedEnvironment| environment.overall[0];
    assert_eq!((overall(native).verdict, overall(native).regression), (Direction::Equivalent, false));
    assert_eq!((overall(vm).verdict, overall(vm).regression), (Direction::Worse, true));
    assert!((overall(vm).ratio - 0.8).abs() < 0.01 && overall(vm).interval.unwrap()[1] < 0.83);
    assert!(compared.is_regression());
    let tally = compared.tally(Quantity::Throughput);
    assert_eq!((tally[&Direction::Worse], tally[&Direction::Equivalent]), (4, 4));
    assert_eq!(compared.tally(Quantity::P99Latency), BTreeMap::new());
    assert_eq!(vm.points[0].repetitions, [5, 5]);
}

#[test]
fn less_latency_is_better() {
    for (finding, throughput, latency) in [
        (Finding::Higher, Direction::Better, Direction::Worse),
        (Finding::Lower, Direction::Worse, Direction::Better),
        (Finding::Equivalent, Direction::Equivalent, Direction::Equivalent),
        (Finding::Undecided, Direction::Undecided, Direction::Undecided),
    ] {
        assert_eq!(Direction::of(finding, Quantity::Throughput.better()), throughput);
        assert_eq!(Direction::of(finding, Quantity::P99Latency.better()), latency);
    }
}

#[test]
fn what_only_one_run_has_is_counted_and_what_differs_is_named() {
    let mut random = Random::new(2);
    let (before, after) = (records(&mut random, 3, 2, 1.0, 0.01), records(&mut random, 2, 2, 1.0, 0.01));
    let mut other = run();
    other.version = "9".into();
    other.host.kernel = "new".into();
    let compared = before_after([(&run(), &before), (&other, &after)], Margin::default());
    assert_eq!(compared.unmatched_points, 2);
    assert_eq!(compared.differences, ["virtbench: 0 before, 9 after", "kernel: k before, new after"]);
    assert_eq!(before_after([(&run(), &before), (&run(), &[])], Margin::default()).environments, []);
}

#[test]
fn a_single_repetition_is_judged_by_its_value_and_is_no_regression() {
    let (before, after) = ([good(key(0), "vm", 0, 100.0, 1.0)], [good(key(0), "vm", 0, 50.0, 1.0)]);
    let compared = compared(&before, &after);
    let change = compared.environments[0].points[0].changes[0];
    assert_eq!((change.verdict, change.interval, change.regression), (Direction::Worse, None, false));
    assert!(!compared.is_regression());
}

#[test]
fn runs_are_in_turn_when_each_began_before_the_other_had_ended() {
    let at = |times: [u64; 2]| {
        times.map(|started_unix_ns| PointRecord { started_unix_ns, ..good(key(0), "vm", 0, 1.0, 1.0) })
    };
    assert!(compared(&at([1, 5]), &at([2, 6])).alternated);
    assert!(!compared(&at([1, 2]), &at([3, 4])).alternated);
}
