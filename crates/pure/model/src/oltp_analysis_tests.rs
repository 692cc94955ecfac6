use super::*;
use crate::oltp::UsersEnd;
use crate::oltp::synthetic;
use virtbench_record::{OltpFailureDetail, Status};

use synthetic::plan;

fn record(
    side: &str,
    step: OltpStep,
    users: u32,
    repetition: u32,
    seconds: [u64; 10],
    idle: f64,
) -> OltpRecord {
    synthetic::record(side, step, users, repetition, synthetic::measured(users, seconds, idle))
}

fn records() -> Vec<OltpRecord> {
    let mut records = Vec::new();
    for (side, scale) in [("native", 10), ("vm", 1)] {
        for (users, rate, idle) in [(1, 20, 60.0), (2, 38, 25.0), (4, 50, 1.0), (8, 51, 0.5)] {
            records.push(record(side, OltpStep::Search, users, 0, [rate * scale; 10], idle));
        }
        for repetition in 0..3 {
            let rate = (50 + 5 * u64::from(repetition)) * scale;
            records.push(record(side, OltpStep::Saturation, 4, repetition, [rate; 10], 1.0));
        }
    }
    records
}

#[test]
fn sides_are_compared_at_their_saturation() {
    let analysis = analyse_oltp(&plan(), &records());
    let native = &analysis.sides[0];
    let found = native.found.expect("there was a search");
    assert_eq!((found.point.users, found.end), (4, UsersEnd::Saturated));
    assert_eq!(native.curve.iter().map(|one| one.point.users).collect::<Vec<_>>(), [1, 2, 4, 8]);
    let ratio = analysis.saturated.ratios[0].ratios[&Quantity::TransactionsPerSecond];
    assert!((ratio.value - 0.1).abs() < 1e-9 && ratio.pairs == 3, "{ratio:?}");
    assert!(analysis.equal.sides.is_empty(), "nothing was measured at equal users");
}

#[test]
fn spread_between_runs_is_told_from_that_within() {
    let steady = analyse_oltp(&plan(), &records()).sides[0].spread;
    // 500, 550, 600: a standard deviation of 50 around 550.
    assert!((steady.between_percent.expect("three runs") - 100.0 * 50.0 / 550.0).abs() < 1e-9, "{steady:?}");
    assert_eq!((steady.within_percent, steady.runs), (Some(0.0), 3));
    let stalls = [100, 100, 100, 100, 0, 0, 100, 100, 100, 100];
    let one = [record("native", OltpStep::Saturation, 4, 0, stalls, 1.0)];
    let spread = analyse_oltp(&plan(), &one).sides[0].spread;
    assert_eq!(spread.between_percent, None);
    assert!(spread.within_percent.is_some_and(|percent| percent > 50.0), "{spread:?}");
}

#[test]
fn failures_stay_with_their_side() {
    let mut records = records();
    records[9].status = Status::Failed { why: "the guest died".into(), detail: OltpFailureDetail::default() };
    let analysis = analyse_oltp(&plan(), &records);
    assert_eq!(analysis.sides[0].failures, Vec::<String>::new());
    assert_eq!(analysis.sides[1].failures, ["the guest died"]);
}

#[test]
fn sides_that_saturate_at_different_users_are_compared_at_the_fewest() {
    let mut records = records();
    // The VM's best is at one user; natively one user was measured beside the saturation.
    records.retain(|record| {
        !(record.key.side == "vm" && (record.key.step == OltpStep::Saturation || record.key.users > 2))
    });
    for repetition in 0..3 {
        records.push(record("vm", OltpStep::Saturation, 2, repetition, [38; 10], 1.0));
        records.push(record("native", OltpStep::EqualUsers, 2, repetition, [380; 10], 25.0));
    }
    let analysis = analyse_oltp(&plan(), &records);
    let ratio = analysis.equal.ratios[0].ratios[&Quantity::TransactionsPerSecond];
    assert!((ratio.value - 0.1).abs() < 1e-9 && ratio.pairs == 3, "{ratio:?}");
    assert!((analysis.equal.sides[1].known[&Quantity::Users].mean - 2.0).abs() < 1e-9);
}
