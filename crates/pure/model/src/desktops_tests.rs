//! Desktops of invented users.

use virtbench_record::{
    DesktopDone, DesktopGone, DesktopNumbers, DesktopsMeasured, DesktopsPlan, DesktopsRecord, Status,
};
use virtbench_samples::desktops::{plan, record};

use super::{analyse_desktops, desktops_left, next_desktops};

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn the_knee_and_the_operation_that_breaks_first_are_named() {
    let plan = plan(DesktopNumbers::Given(vec![2, 4, 6, 14]));
    let records: Vec<DesktopsRecord> = [2, 4, 6, 14].map(|number| record(number, 0)).into();
    let analysis = analyse_desktops(&plan, &records);
    assert_eq!(analysis.most, Some(4));
    assert_eq!(analysis.broke_first.map(|one| one.operation), Some("modify".into()));
    let at = &analysis.numbers[1];
    assert_eq!((at.desktops, at.per_processor, at.host_busy_percent), (4, 2.0, Some(75.0)));
    let steady = at.groups[0].percentile.unwrap();
    assert_eq!((steady.ns, steady.operations, steady.high_ns), (800_000_000, 76, Some(800_000_000)));
    assert_eq!(at.groups[0].storm.map(|storm| storm.operations), Some(4));
    assert!(at.between_users_percent.is_some_and(|percent| percent < 1e-6));
    assert_eq!(at.quality, "passed");
}

#[test]
fn the_picture_judges_beside_the_marker_and_their_agreement_is_told() {
    let plan = plan(DesktopNumbers::Given(vec![2, 3, 4]));
    // The picture still changes for as long again as an operation took, in all of its own but an archiver's.
    let later = |number| {
        let mut record = record(number, 0);
        if let Status::Measured(measured) = &mut record.status {
            for times in measured.operations.iter_mut().filter_map(|done| done.times.as_mut()) {
                times.last_change_ns = Some(2 * times.latency_ns);
            }
            measured.operations[2].times.as_mut().unwrap().last_change_ns = None;
        }
        record
    };
    let records: Vec<DesktopsRecord> = [2, 3, 4].map(later).into();
    let analysis = analyse_desktops(&plan, &records);
    assert_eq!((analysis.most, analysis.most_by_last_change), (Some(4), Some(2)));
    let at = &analysis.numbers[1];
    assert_eq!(at.groups[0].last_change.map(|found| found.ns), Some(1_200_000_000));
    let agreement = at.agreement.unwrap();
    assert_eq!((agreement.operations, agreement.percentile_ns), (113, 1_500_000_000));
    assert_eq!(analyse_desktops(&plan, &[record(2, 0)]).most_by_last_change, Some(2));
    let mut existing = record(2, 0);
    if let Status::Measured(measured) = &mut existing.status {
        for times in measured.operations.iter_mut().filter_map(|done| done.times.as_mut()) {
            times.inside_ns = None;
        }
    }
    assert_eq!(analyse_desktops(&plan, &[existing]).numbers[0].agreement, None);
}

#[test]
fn what_the_session_s_own_clock_tells_is_held_against_the_client_s() {
    let plan = plan(DesktopNumbers::Given(vec![2]));
    let mut fast = record(2, 0);
    if let Status::Measured(measured) = &mut fast.status {
        let times = measured.operations[7].times.as_mut().unwrap();
        times.inside_ns = Some(times.latency_ns + 1);
    }
    let analysis = analyse_desktops(&plan, &[fast]);
    let at = &analysis.numbers[0];
    assert_eq!((at.outside, at.operations[0].inside_median_ns), (1, Some(SECOND_NS / 2)));
    assert_eq!(analyse_desktops(&plan, &[record(2, 0)]).numbers[0].outside, 0);
}

#[test]
fn where_nobody_got_beyond_the_storm_nothing_is_said_to_have_broken() {
    let plan = plan(DesktopNumbers::Given(vec![1]));
    let mut record = record(1, 0);
    if let Status::Measured(measured) = &mut record.status {
        measured.operations.retain(|done| done.storm);
        assert!(!measured.operations.is_empty());
    }
    let analysis = analyse_desktops(&plan, &[record]);
    assert_eq!((analysis.most, analysis.broke_first), (None, None));
    assert_eq!(analysis.numbers[0].quality, "unknown");
}

#[test]
fn too_many_desktops_that_fail_are_a_failure_however_fast_the_others_are() {
    let plan = plan(DesktopNumbers::Given(vec![2]));
    let analysis = analyse_desktops(&plan, &[record(2, 2)]);
    assert_eq!((analysis.most, analysis.numbers[0].quality.as_str()), (None, "failed"));
}

#[test]
fn one_desktop_that_was_lost_fails_its_number() {
    let plan = plan(DesktopNumbers::Given(vec![2]));
    let lost = |change: &dyn Fn(&mut DesktopsMeasured)| {
        let mut record = record(2, 0);
        if let Status::Measured(measured) = &mut record.status {
            change(measured);
        }
        let analysis = analyse_desktops(&plan, &[record]);
        assert_eq!((analysis.most, analysis.most_by_last_change, analysis.broke_first), (None, None, None));
        let [at] = analysis.numbers.as_slice() else { panic!("one number") };
        assert_eq!(at.quality, "failed");
        let [one] = at.lost.as_slice() else { panic!("{:?}", at.lost) };
        assert_eq!(one.user, 1);
        one.why.clone()
    };
    let fail = |done: &mut DesktopDone| (done.times, done.failed) = (None, Some("frozen".into()));
    let refused = DesktopGone { user: 1, why: "refused".into() };
    let never = lost(&|measured| {
        measured.operations.retain(|done| done.user == 0);
        measured.gone.push(refused.clone());
    });
    assert_eq!(never, "refused");
    let late = lost(&|measured| measured.operations.iter_mut().skip(78).for_each(fail));
    assert!(late.contains("last 2 operations") && late.contains("frozen"), "2 of 80 are 2.5 %: {late}");
    let idle = lost(&|measured| measured.operations.retain(|done| done.user == 0));
    assert!(idle.contains("did nothing"), "{idle}");
    let dead = lost(&|measured| {
        measured.operations.truncate(41);
        measured.operations.iter_mut().skip(40).for_each(fail);
    });
    assert!(dead.starts_with("no operation succeeded"), "{dead}");
}

#[test]
fn operations_that_failed_took_longer_than_their_limit() {
    let plan = DesktopsPlan { errors: 0.2, ..plan(DesktopNumbers::Given(vec![2])) };
    let mut record = record(2, 0);
    if let Status::Measured(measured) = &mut record.status {
        for done in measured.operations.iter_mut().skip(3).step_by(10) {
            (done.times, done.failed) = (None, Some("no end".into()));
        }
    }
    let analysis = analyse_desktops(&plan, &[record]);
    let at = &analysis.numbers[0];
    assert_eq!((at.quality.as_str(), at.lost.len(), at.errors), ("failed", 0, 0.1));
    assert_eq!(at.error_kinds.get("no end"), Some(&8));
    assert_eq!(analysis.broke_first.map(|one| one.operation), Some("modify".into()));
}

#[test]
fn a_search_doubles_then_halves_and_ends_between_neighbours() {
    let plan = plan(DesktopNumbers::Auto { most: 64 });
    let (mut records, mut tried, mut left) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((number, repetition)) = next_desktops(&plan, &records) {
        assert_eq!(repetition, 0);
        tried.push(number);
        records.push(record(number, 0));
        left.push(desktops_left(&plan, &records));
    }
    assert_eq!(left, [None, None, None, Some(2), Some(1), Some(0)]);
    assert_eq!(tried, [1, 2, 4, 8, 6, 5], "modify breaks beyond five");
    assert_eq!(analyse_desktops(&plan, &records).most, Some(5));
    let mut small = plan.clone();
    small.desktops = DesktopNumbers::Auto { most: 3 };
    assert_eq!(next_desktops(&small, &[record(1, 0), record(2, 0)]), Some((3, 0)));
    assert_eq!(next_desktops(&small, &[record(1, 0), record(2, 0), record(3, 0)]), None);
    let given = DesktopsPlan { desktops: DesktopNumbers::Given(vec![1, 4]), repetitions: 2, ..plan };
    assert_eq!(next_desktops(&given, &[record(1, 0)]), Some((1, 1)));
    assert_eq!(desktops_left(&given, &[record(1, 0)]), Some(3));
}
