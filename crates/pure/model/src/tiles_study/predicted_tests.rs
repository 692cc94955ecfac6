//! Tiles of which it is known what they have to do.

use virtbench_record::{
    Status, TileAlone, TileDone, TileLoad, TileLoadKind, TileMemberMeasured, TileNumbers, TilesKey,
    TilesPlan, TilesRecord,
};
use virtbench_samples::tiles::{host, plan, record};

use super::super::{analyse_tiles_study, next_tiles, tiles_left};

const SECOND_NS: f64 = 1e9;

/// One tile in which the host computes so many processors' time, and of its members these do so much a second in so many seconds each.
fn alone(who: TileAlone, busy: f64, members: &[(&str, f64, f64)]) -> TilesRecord {
    let TilesRecord { status: Status::Measured(mut measured), .. } = record(1, 0, [1.0, 1.0]) else {
        panic!()
    };
    measured.host = host(100.0 * busy);
    measured.members = members.iter().map(|member| done(1, *member)).collect();
    TilesRecord::new(TilesKey::alone(who), 0, Status::Measured(measured))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times of a test
fn done(tile: u32, (member, per_second, response_s): (&str, f64, f64)) -> TileMemberMeasured {
    let ns = (response_s * SECOND_NS) as u64;
    let done =
        TileDone { per_second, completed: Some(100), client_response_ns: Some(ns), ..TileDone::default() };
    TileMemberMeasured {
        tile,
        member: member.into(),
        ready_ns: 1,
        network_thread_percent: None,
        done: Some(done),
    }
}

/// So many tiles of the same members.
fn together(tiles: u32, busy: f64, members: &[(&str, f64, f64)]) -> TilesRecord {
    let mut record = alone(TileAlone::Nobody, busy, members);
    record.key = TilesKey::together(tiles, 0);
    let Status::Measured(measured) = &mut record.status else { panic!() };
    measured.members = (1..=tiles).flat_map(|tile| members.iter().map(move |one| done(tile, *one))).collect();
    record
}

/// Mail alone, on VMs of one processor on a host of two.
fn mail(load: impl Fn(&mut TileLoad)) -> TilesPlan {
    let mut plan = TilesPlan { predict: true, ..plan(TileNumbers::Given(vec![1, 2, 4])) };
    plan.members.retain(|member| member.load.kind != TileLoadKind::Oltp);
    load(&mut plan.members[0].load);
    plan
}

fn rates(plan: &TilesPlan, records: &[TilesRecord]) -> Vec<(f64, Option<f64>, f64)> {
    let found = analyse_tiles_study(plan, records).predicted;
    let of_run = |run: &virtbench_record::TilePredicted| {
        let member = &run.members[0];
        let response = member.predicted_response_ns.map(|ns| ns as f64 / SECOND_NS);
        (member.predicted_per_second, response, run.predicted_busy_percent)
    };
    found.iter().map(of_run).collect()
}

/// One user, who computes for 10 ms without a pause, has a processor for himself in two VMs and half of one in four.
#[test]
fn members_that_only_compute_share_the_processors_there_are() {
    let plan = mail(|load| load.users = Some(1));
    let own = [("mail", 100.0, 0.01)];
    let mut records = vec![alone(TileAlone::Nobody, 0.0, &[]), alone(TileAlone::Member(0), 1.0, &own)];
    records.extend([1, 2, 4].map(|tiles| together(tiles, 1.0, &own)));
    let found = rates(&plan, &records);
    for (found, wanted) in found.iter().zip([(100.0, 0.01, 50.0), (100.0, 0.01, 100.0), (50.0, 0.02, 100.0)])
    {
        let near = |is: f64, said: f64| (is / said - 1.0).abs() < 0.01;
        assert!(
            near(found.0, wanted.0) && near(found.1.unwrap(), wanted.1) && near(found.2, wanted.2),
            "{found:?} {wanted:?}"
        );
    }
}

/// 10 operations of 10 ms a second take a tenth of a processor: ten tiles fit into half of the host, thirty do not.
#[test]
fn a_member_at_a_fixed_rate_keeps_it_until_the_processors_are_used_up() {
    let plan = mail(|load| (load.users, load.rate) = (Some(4), Some(10.0)));
    let own = [("mail", 10.0, 0.01)];
    let mut records = vec![alone(TileAlone::Nobody, 0.0, &[]), alone(TileAlone::Member(0), 0.1, &own)];
    records.extend([1, 10, 30].map(|tiles| together(tiles, 1.0, &own)));
    let found = rates(&plan, &records);
    let [(one, alone_s, _), (ten, ten_s, busy), (thirty, none, all)] = found[..] else { panic!("{found:?}") };
    assert!((one - 10.0).abs() < 0.01 && (alone_s.unwrap() - 0.01).abs() < 1e-4, "{found:?}");
    assert!(
        (ten - 10.0).abs() < 0.01 && (0.0101..0.02).contains(&ten_s.unwrap()) && (busy - 50.0).abs() < 0.1,
        "{found:?}"
    );
    assert!((6.0..7.4).contains(&thirty) && none.is_none() && all > 90.0, "{found:?}");
}

/// Of 50 ms a user waits for 45 on something else: that stays, and computing alone is stretched.
#[test]
fn what_is_waited_for_is_as_long_as_alone() {
    let plan = mail(|load| load.users = Some(1));
    let own = [("mail", 20.0, 0.05)];
    let mut records = vec![alone(TileAlone::Nobody, 0.0, &[]), alone(TileAlone::Member(0), 0.1, &own)];
    records.push(together(40, 1.0, &own));
    let (per_second, response_s, busy) = rates(&plan, &records)[0];
    assert!(
        (9.0..11.0).contains(&per_second) && response_s.unwrap() > 0.09 && busy > 90.0,
        "{per_second} {response_s:?} {busy}"
    );
}

/// Half of a processor that another program took while mail was alone is not mail's.
#[test]
fn what_other_programs_took_is_no_member_s() {
    let plan = mail(|load| load.users = Some(1));
    let own = [("mail", 20.0, 0.05)];
    let mut disturbed = alone(TileAlone::Member(0), 0.6, &own);
    let Status::Measured(measured) = &mut disturbed.status else { panic!() };
    measured.host.others_percent = Some(50.0);
    let records = [alone(TileAlone::Nobody, 0.0, &[]), disturbed, together(1, 0.1, &own)];
    let (_, _, busy) = rates(&plan, &records)[0];
    assert!((busy - 5.0).abs() < 0.1, "a tenth of one of two processors: {busy}");
}

#[test]
fn members_by_themselves_come_first_and_are_never_scored() {
    let plan = mail(|load| load.users = Some(1));
    let own = [("mail", 100.0, 0.01)];
    let mut records: Vec<TilesRecord> = Vec::new();
    assert_eq!(next_tiles(&plan, &records), Some(TilesKey::alone(TileAlone::Nobody)));
    assert_eq!(tiles_left(&plan, &records), Some(5));
    let why = analyse_tiles_study(&plan, &records).unpredicted.unwrap();
    assert_eq!(why, "the idle tile by itself was not measured yet");
    records.push(alone(TileAlone::Nobody, 0.0, &[]));
    let mut void = alone(TileAlone::Member(0), 1.0, &own);
    let Status::Measured(measured) = &mut void.status else { panic!() };
    measured.void.push("the clock was set".into());
    records.push(void);
    assert_eq!(next_tiles(&plan, &records), Some(TilesKey::alone(TileAlone::Member(0))), "once more");
    let analysis = analyse_tiles_study(&plan, &records);
    assert_eq!(analysis.unpredicted.unwrap(), "mail by itself has no run that counts: the clock was set");
    assert!(analysis.scored.configurations.is_empty() && analysis.void.is_empty(), "{:?}", analysis.scored);
    records.push(alone(TileAlone::Member(0), 1.0, &own));
    assert_eq!(next_tiles(&plan, &records), Some(TilesKey::together(1, 0)));
    records.push(together(1, 1.0, &[("mail", 80.0, 0.0125)]));
    let analysis = analyse_tiles_study(&plan, &records);
    assert_eq!(analysis.configuration().unwrap().steps.len(), 1);
    let errors = analysis.prediction_errors.unwrap();
    assert!((errors.per_second_percent - 25.0).abs() < 0.1, "100 predicted, 80 measured: {errors:?}");
    assert!(
        (errors.response_percent.unwrap() - 20.0).abs() < 0.1,
        "10 ms predicted, 12.5 measured: {errors:?}"
    );
    assert!((errors.busy_percent - 0.0).abs() < 0.1, "{errors:?}");
    let without = TilesPlan { predict: false, ..plan };
    assert_eq!(next_tiles(&without, &[]), Some(TilesKey::together(1, 0)));
    assert_eq!(analyse_tiles_study(&without, &[]).unpredicted, None);
}
