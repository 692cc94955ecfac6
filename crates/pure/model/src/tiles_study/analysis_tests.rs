//! Tiles of invented members.

use std::collections::BTreeMap;

use virtbench_record::{
    CloneKind, OperationKind, OperationNumbers, OperationsLoad, OperationsMeasured, OperationsPlan,
    PowerSample, Status, TileEnergy, TileHostSecond, TileLevels, TileNumbers, TileSecond, TilesFailureDetail,
    TilesKey, TilesPlan, TilesRecord,
};
use virtbench_samples::tiles::{host, plan, record};
use virtbench_units::LatencySummary;

use super::breaches::operations_needed;
use super::{analyse_tiles_study, mean_watts, next_tiles, summarise_tiles_study, tiles_left};

const SECOND_NS: u64 = 1_000_000_000;

fn void(mut record: TilesRecord, why: &str) -> TilesRecord {
    if let Status::Measured(measured) = &mut record.status {
        measured.void.push(why.into());
    }
    record
}

/// Two tiles whose members do 1.21 and 1 times the reference: 1.1 each, 2.2 in all. Idle members do not count.
#[test]
fn a_study_s_score_is_the_model_s_and_the_first_to_break_is_named_with_the_resource() {
    let plan = plan(TileNumbers::Given(vec![1, 2, 3]));
    let records = [record(1, 0, [1.21, 1.0]), record(2, 0, [1.21, 1.0]), record(3, 0, [0.8, 0.3])];
    let analysis = analyse_tiles_study(&plan, &records);
    let one = analysis.configuration().unwrap();
    assert_eq!((one.most().unwrap().tiles, one.too_many().unwrap().tiles), (2, 3));
    assert!((one.most().unwrap().score().unwrap().mean - 2.2).abs() < 1e-12);
    assert_eq!(one.too_many().unwrap().score(), None);
    assert_eq!(analysis.breaches.len(), 6);
    let first = analysis.broke_first.as_ref().unwrap();
    assert_eq!((first.member.as_str(), first.beyond.map(|beyond| beyond.round())), ("oltp", Some(3.0)));
    assert!(analysis.host[1].exhausted.is_empty(), "{:?}", analysis.host);
    assert_eq!(analysis.host[2].exhausted, ["the processors, 99 % busy"]);
    // This host says nothing of members that are elsewhere.
    let elsewhere = TilesPlan { vm: false, existing: true, ..plan };
    assert!(analyse_tiles_study(&elsewhere, &records).host[2].exhausted.is_empty());
    let numbers = summarise_tiles_study(virtbench_record::Conclusion::default(), &analysis);
    assert_eq!(numbers.tiles.unwrap().fits, Some(2));
    assert_eq!(numbers.energy_unavailable.as_deref(), Some("no energy source"));
}

#[test]
fn without_a_reference_a_member_is_held_against_what_it_did_with_the_fewest_tiles() {
    let mut plan = plan(TileNumbers::Given(vec![1, 2]));
    plan.members[1].reference = None;
    let records = [record(1, 0, [1.0, 4.0]), record(2, 0, [1.0, 1.0])];
    let analysis = analyse_tiles_study(&plan, &records);
    let steps = &analysis.configuration().unwrap().steps;
    assert!((steps[0].score().unwrap().mean - 1.0).abs() < 1e-12);
    assert!((steps[1].score().unwrap().mean - 1.0).abs() < 1e-12, "the root of a quarter, twice");
    assert!((steps[1].members[1].of_one_tile.unwrap().value - 0.25).abs() < 1e-12);
}

#[test]
fn levels_of_response_time_and_of_errors_are_kept_or_broken() {
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.members[0].levels.response_ns = Some(SECOND_NS);
    let mut record = record(1, 0, [1.0, 1.0]);
    let Status::Measured(measured) = &mut record.status else { panic!() };
    let done = measured.members[0].done.as_mut().unwrap();
    done.client_response_ns = Some(SECOND_NS);
    let done = measured.members[1].done.as_mut().unwrap();
    (done.completed, done.failed) = (Some(98), 2);
    let analysis = analyse_tiles_study(&plan, std::slice::from_ref(&record));
    let [breach] = analysis.breaches.as_slice() else { panic!("{:?}", analysis.breaches) };
    assert_eq!(breach.member, "oltp");
    assert_eq!(breach.level, "2.00 % of operations failed, allowed 1 %");
    let Status::Measured(measured) = &mut record.status else { panic!() };
    measured.members[0].done.as_mut().unwrap().client_response_ns = Some(2 * SECOND_NS);
    measured.members[1].done.as_mut().unwrap().failed = 0;
    let analysis = analyse_tiles_study(&plan, &[record]);
    assert_eq!(analysis.breaches[0].level, "95 % of operations took up to 2s, allowed 1s");
}

#[test]
fn a_search_doubles_then_halves_and_does_not_repeat_what_is_broken() {
    let mut plan = plan(TileNumbers::Auto { most: 32 });
    plan.repetitions = 2;
    let (mut records, mut tried, mut left) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(TilesKey { tiles, repetition, .. }) = next_tiles(&plan, &records) {
        tried.push((tiles, repetition));
        left.push(tiles_left(&plan, &records));
        records.push(record(tiles, repetition, if tiles <= 5 { [1.0, 1.0] } else { [1.0, 0.5] }));
        assert!(tried.len() < 50);
    }
    assert_eq!(tried, [(1, 0), (1, 1), (2, 0), (2, 1), (4, 0), (4, 1), (8, 0), (6, 0), (5, 0), (5, 1)]);
    assert_eq!(left[6..], [None, Some(4), Some(2), Some(1)]);
    assert_eq!(analyse_tiles_study(&plan, &records).configuration().unwrap().most().unwrap().tiles, 5);
    let first_broken = [record(1, 0, [1.0, 0.5])];
    assert_eq!(next_tiles(&plan, &first_broken), None, "no tile fits");
}

#[test]
fn a_run_that_does_not_count_is_tried_once_more_and_is_no_evidence() {
    let plan = plan(TileNumbers::Auto { most: 2 });
    let first = void(record(1, 0, [1.0, 0.1]), "the clock was set");
    let analysis = analyse_tiles_study(&plan, std::slice::from_ref(&first));
    assert_eq!((analysis.configuration(), analysis.breaches.len(), analysis.void.len()), (None, 0, 1));
    assert_eq!(next_tiles(&plan, std::slice::from_ref(&first)), Some(TilesKey::together(1, 0)));
    assert_eq!(next_tiles(&plan, &[first.clone(), record(1, 0, [1.0, 1.0])]), Some(TilesKey::together(2, 0)));
    assert_eq!(next_tiles(&plan, &[first.clone(), first]), None);
}

#[test]
fn a_member_that_ended_breaks_its_number_of_tiles() {
    let plan = plan(TileNumbers::Auto { most: 8 });
    let status = Status::Failed {
        why: "postfix was killed".into(),
        detail: TilesFailureDetail { tile: Some(2), member: Some("mail".into()) },
    };
    let failed = TilesRecord { status, ..record(2, 0, [1.0, 1.0]) };
    let records = [record(1, 0, [1.0, 1.0]), failed];
    assert_eq!(next_tiles(&plan, &records), None);
    let analysis = analyse_tiles_study(&plan, &records);
    assert_eq!(analysis.configuration().unwrap().most().unwrap().tiles, 1);
    let first = analysis.broke_first.unwrap();
    assert_eq!((first.tile, first.member.as_str(), first.level.as_str()), (2, "mail", "postfix was killed"));
}

/// 100 W for 2 s, rising to 200 W over the next 2 s: 200 J and 300 J, of which the window from nought to 4 s has all.
#[test]
fn power_is_integrated_over_the_measuring_time_alone() {
    let sample = |at_ms: i64, watts| PowerSample { at_ns: at_ms * 1_000_000, watts };
    let read = |samples| TileEnergy::Read { source: "file:x".into(), samples };
    let samples =
        vec![sample(-2_000, 100.0), sample(2_000, 100.0), sample(4_000, 200.0), sample(8_000, 900.0)];
    assert!((mean_watts(&read(samples.clone()), 4 * SECOND_NS).unwrap() - 125.0).abs() < 1e-9);
    // Half a second more: from 200 W to 287.5 W.
    let expected = (500.0 + 0.5 * 243.75) / 4.5;
    assert!((mean_watts(&read(samples), 4_500_000_000).unwrap() - expected).abs() < 1e-9);
    assert_eq!(mean_watts(&read(vec![sample(0_000, 1.0), sample(1_000, 1.0)]), 10 * SECOND_NS), None);
    assert_eq!(mean_watts(&TileEnergy::Unavailable("x".into()), SECOND_NS), None);
}

#[test]
fn a_score_per_kilowatt_is_the_score_over_the_mean_power() {
    let plan = plan(TileNumbers::Given(vec![1]));
    let mut record = record(1, 0, [1.0, 1.0]);
    let Status::Measured(measured) = &mut record.status else { panic!() };
    let samples = [0, 10].map(|s| PowerSample { at_ns: s * 1_000_000_000, watts: 250.0 }).into();
    measured.energy = TileEnergy::Read { source: "rapl".into(), samples };
    let analysis = analyse_tiles_study(&plan, &[record]);
    assert_eq!((analysis.host[0].watts, analysis.host[0].score_per_kilowatt), (Some(250.0), Some(4.0)));
}

/// A minute at five operations a minute, of a mix of two: two rounds fit, an operation every 15 s.
fn infrastructure() -> OperationsPlan {
    OperationsPlan {
        platform: "libvirt+qemu:///system".into(),
        destination: None,
        mix: BTreeMap::from([(OperationKind::Clone, 1), (OperationKind::Remove, 1)]),
        left_out: vec![OperationKind::Migrate],
        vms: vec![4],
        load: OperationsLoad::Open(vec![5.0]),
        pieces: 1,
        piece_ns: 60 * SECOND_NS,
        warm_ns: 0,
        clones: vec![CloneKind::Full],
        limit_ns: 30 * SECOND_NS,
        most_at_once: 64,
        memory_bytes: 96 << 20,
        disk_bytes: 64 << 20,
        accelerator: "tcg".into(),
        seed: 1,
        tenants: Vec::new(),
        tenant_workload: None,
    }
}

/// This many clones and removals ended, within this many seconds.
fn with_operations(mut record: TilesRecord, done: [u64; 2], seconds: u64) -> TilesRecord {
    let Status::Measured(measured) = &mut record.status else { panic!() };
    let kinds = [OperationKind::Clone, OperationKind::Remove].into_iter().zip(done);
    let numbers = kinds.map(|(kind, done)| (kind, OperationNumbers { done, ..OperationNumbers::default() }));
    measured.infrastructure = Some(OperationsMeasured {
        elapsed_ns: seconds * SECOND_NS,
        intended: 4,
        not_issued: 0,
        operations: numbers.collect(),
        clones: std::collections::BTreeMap::new(),
        latency_ns: None,
        vms_at_end: 4,
        running_at_end: 2,
        host: host(100.0),
        tenants: Vec::new(),
        first_failures: Vec::new(),
        ..OperationsMeasured::default()
    });
    record
}

/// Two tiles of 1.1 make 2.2; an infrastructure load that keeps its pace makes 1: 80 % and 20 % of them are 1.96. One that takes 80 s
/// for a minute's work makes three quarters: 1.91.
#[test]
fn an_infrastructure_load_is_a_fifth_of_the_total() {
    let mut plan = plan(TileNumbers::Given(vec![2]));
    plan.infrastructure = Some(infrastructure());
    assert_eq!(plan.infrastructure.as_ref().unwrap().pace(), Some((2, 15 * SECOND_NS)));
    for (seconds, of_infrastructure, total) in [(60, 1.0, 1.96), (80, 0.75, 1.91)] {
        let records = [with_operations(record(2, 0, [1.21, 1.0]), [2, 2], seconds)];
        let analysis = analyse_tiles_study(&plan, &records);
        let step = analysis.configuration().unwrap().most().unwrap();
        assert!((step.sum.unwrap().mean - 2.2).abs() < 1e-12);
        assert!((step.infrastructure.unwrap().mean - of_infrastructure).abs() < 1e-12);
        assert!((step.score().unwrap().mean - total).abs() < 1e-12);
        assert!((step.jain.unwrap_or(1.0) - 1.0).abs() < 1e-12, "operations are no members of a tile");
        let numbers = summarise_tiles_study(virtbench_record::Conclusion::default(), &analysis);
        assert_eq!(numbers.covers, "applications 80 %, infrastructure 20 % (clone, remove; without migrate)");
        let members = &numbers.tiles.unwrap().steps[0].members;
        let operations: Vec<&str> =
            members.iter().filter(|one| one.infrastructure).map(|one| one.member.as_str()).collect();
        assert_eq!(operations, ["clone", "remove"]);
    }
}

#[test]
fn operations_that_are_not_done_break_a_number_of_tiles() {
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.infrastructure = Some(infrastructure());
    let records = [with_operations(record(1, 0, [1.0, 1.0]), [1, 2], 60)];
    let analysis = analyse_tiles_study(&plan, &records);
    let first = analysis.broke_first.as_ref().unwrap();
    assert_eq!((first.tile, first.member.as_str(), first.beyond), (0, "infrastructure", Some(2.5)));
    assert!(first.level.starts_with("1 of 4 management operations were not done within 30s"), "{first:?}");
    let one = analysis.configuration().unwrap();
    assert_eq!((one.most().map(|step| step.tiles), one.too_many().unwrap().score()), (None, None));
    let broken = one.steps[0].members.iter().filter(|member| member.broken > 0);
    assert_eq!(broken.map(|member| member.name.as_str()).collect::<Vec<_>>(), ["clone"]);
}

/// The database is farthest from its level, but the mail was too slow before that.
#[test]
fn the_first_to_break_in_time_is_told_from_the_farthest() {
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.members[0].levels = TileLevels { response_ns: Some(SECOND_NS), ..plan.members[0].levels };
    let mut record = record(1, 0, [1.0, 0.3]);
    let Status::Measured(measured) = &mut record.status else { panic!() };
    let series = |seconds: &[(u64, u64)]| -> Vec<TileSecond> {
        let second = |(start, (completed, response_s)): (u64, &(u64, u64))| TileSecond {
            start_ns: start * SECOND_NS,
            completed: *completed,
            failed: 0,
            response_ns: Some(response_s * SECOND_NS),
        };
        (0..).zip(seconds).map(second).collect()
    };
    let mail = measured.members[0].done.as_mut().unwrap();
    mail.client_response_ns = Some(2 * SECOND_NS);
    mail.series = series(&[(1, 1), (1, 2), (1, 1), (1, 1), (1, 1)]);
    // Of the least of 0.9 a second: 2 of 0.9, 2 of 1.8, then 2 of 2.7 and fewer.
    measured.members[1].done.as_mut().unwrap().series = series(&[(2, 1), (0, 1), (0, 1), (0, 1), (0, 1)]);
    let analysis = analyse_tiles_study(&plan, &[record]);
    let since = |breach: &Option<virtbench_record::TileBreach>| {
        let breach = breach.as_ref().unwrap();
        (breach.member.clone(), breach.since_ns)
    };
    assert_eq!(since(&analysis.broke_first), ("oltp".into(), Some(2 * SECOND_NS)));
    assert_eq!(since(&analysis.first_in_time), ("mail".into(), Some(SECOND_NS)));
}

#[test]
fn a_network_is_named_where_it_is_exhausted() {
    let plan = plan(TileNumbers::Given(vec![1]));
    let mut record = record(1, 0, [1.0, 0.5]);
    let Status::Measured(measured) = &mut record.status else { panic!() };
    measured.host = host(100.0);
    measured.members[1].network_thread_percent = Some(98.2);
    let second = |start: u64| TileHostSecond {
        start_ns: start * SECOND_NS,
        cpu_percent: 100.0,
        steal_percent: 0.0,
        available_bytes: None,
        disk_percent: None,
        network_percent: Some(95.0),
    };
    measured.seconds = (0..2).map(second).collect();
    let analysis = analyse_tiles_study(&plan, &[record]);
    assert_eq!(
        analysis.host[0].exhausted,
        ["a network interface, at 95 % of its speed", "the network of a VM, whose thread was 98 % busy"]
    );
}

/// A member with so many response times, of which the slowest took so long and 95 % a tenth of that.
fn answered(completed: u64, max_ns: u64) -> TilesRecord {
    let mut record = record(1, 0, [1.0, 1.0]);
    if let Status::Measured(measured) = &mut record.status {
        let latency = LatencySummary {
            min: 1,
            mean: 1.0,
            stddev: 0.0,
            max: max_ns,
            p50: 1,
            p90: 1,
            p95: max_ns / 10,
            p99: max_ns,
            p99_9: max_ns,
            p99_99: None,
        };
        let done = measured.members[0].done.as_mut().unwrap();
        (done.completed, done.latency_ns) = (Some(completed), Some(latency));
    }
    record
}

#[test]
fn of_too_few_operations_the_slowest_is_held_against_the_level() {
    assert_eq!([50.0, 90.0, 95.0, 99.0, 99.9].map(operations_needed), [5, 29, 59, 299, 2995]);
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.members[0].levels.response_ns = Some(SECOND_NS);
    let judged = |record: TilesRecord| {
        let analysis = analyse_tiles_study(&plan, &[record]);
        (analysis.breaches.len(), analysis.few.len())
    };
    assert_eq!(judged(answered(59, 2 * SECOND_NS)), (0, 0), "one of 59 may be slow");
    assert_eq!(judged(answered(58, 2 * SECOND_NS)), (1, 1));
    assert_eq!(judged(answered(58, SECOND_NS)), (0, 1), "all were quick, which is said to be few");
}

#[test]
fn a_member_that_does_not_keep_up_with_its_rate_breaks_without_a_level() {
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.members[0].levels.least_per_second = None;
    let mut record = record(1, 0, [1.0, 1.0]);
    if let Status::Measured(measured) = &mut record.status {
        let done = measured.members[0].done.as_mut().unwrap();
        (done.fell_behind, done.backlog_end) = (true, Some(4_888));
    }
    let analysis = analyse_tiles_study(&plan, &[record]);
    let [breach] = analysis.breaches.as_slice() else { panic!("{:?}", analysis.breaches) };
    assert!(breach.member == "mail" && breach.level.contains("4888 operations were due"), "{breach:?}");
    assert!(!analysis.scored.configurations[0].steps[0].fits());
}

#[test]
fn a_member_that_did_nothing_breaks_without_a_level_and_scores_nothing() {
    let mut plan = plan(TileNumbers::Given(vec![1]));
    plan.members[0].levels.least_per_second = None;
    plan.members[0].reference = None;
    let mut record = record(1, 0, [0.0, 1.0]);
    if let Status::Measured(measured) = &mut record.status {
        measured.members[0].done.as_mut().unwrap().completed = Some(0);
    }
    let analysis = analyse_tiles_study(&plan, &[record]);
    assert_eq!(analysis.broke_first.map(|first| first.member), Some("mail".into()));
    let step = &analysis.scored.configurations[0].steps[0];
    assert_eq!((step.fits(), step.sum.map(|sum| sum.mean)), (false, Some(0.0)));
}
