use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use tempfile::TempDir;
use virtbench_model::operations::analyse_operations;
use virtbench_operations::Mix;
use virtbench_platforms::{Action, Failure, Performed, Platform, Stopwatch, VmState};
use virtbench_record::{
    FailureKind, OperationKind, OperationLine, OperationsLoad, OperationsPlan, OperationsRecord, Phase, Plan,
    PlatformFacts,
};

use super::*;
use crate::runner::begun_run::described;
use crate::runner::progress::Progress;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

use virtbench_samples::operations as synthetic;

/// A platform in memory, which refuses what is illegal.
#[derive(Debug, Default)]
struct Fake {
    vms: Mutex<BTreeMap<String, VmState>>,
    /// VMs that were ever made.
    made: AtomicU32,
    /// Operations of this kind fail so.
    fails: Option<(OperationKind, FailureKind)>,
    /// It lacks migration.
    cannot_migrate: bool,
    /// A stop comes with the operation of this number.
    stop_at: Option<(u32, &'static AtomicBool)>,
    operations: AtomicU32,
    in_flight: AtomicU32,
    most_in_flight: AtomicU32,
    illegal: AtomicU32,
    /// From the operation of this number on, nobody answers so many calls.
    away: Option<(u32, AtomicU32)>,
    /// Operations take so long, in nanoseconds that nobody waits for, by the number of VMs.
    takes_ns: Option<fn(usize) -> u64>,
}

impl Fake {
    /// Whether nobody answers this call.
    fn is_away(&self) -> Result<(), Failure> {
        let Some((from, left)) = &self.away else { return Ok(()) };
        let lost = self.operations.load(Ordering::Relaxed) > *from
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if lost { Err(Failure::new(FailureKind::Unreachable, "nobody answers")) } else { Ok(()) }
    }

    fn act(&self, vm: &str, action: &Action) -> Result<(), Failure> {
        let kind = action.kind();
        if let Some((_, how)) = self.fails.filter(|(fails, _)| *fails == kind) {
            return Err(Failure::new(how, "as was told"));
        }
        let mut vms = self.vms.lock().unwrap();
        let state = vms.get(vm).copied();
        let wrong = || {
            self.illegal.fetch_add(1, Ordering::Relaxed);
            Err(Failure::new(FailureKind::WrongState, format!("{kind:?} of a VM that is {state:?}")))
        };
        match (action, state) {
            (Action::PowerOn, Some(VmState::Off)) => drop(vms.insert(vm.into(), VmState::On)),
            (Action::PowerOff, Some(VmState::On)) => drop(vms.insert(vm.into(), VmState::Off)),
            (Action::Remove, Some(VmState::Off)) => drop(vms.remove(vm)),
            (Action::Clone { into, .. }, Some(VmState::Off)) => {
                self.made.fetch_add(1, Ordering::Relaxed);
                vms.insert(into.clone(), VmState::Off);
            }
            (Action::Migrate, Some(VmState::On)) => {}
            (
                Action::CreateSnapshot { .. } | Action::DeleteSnapshot { .. } | Action::Reconfigure { .. },
                Some(_),
            ) => {}
            _ => return wrong(),
        }
        Ok(())
    }
}

impl Platform for Fake {
    fn facts(&self) -> PlatformFacts {
        PlatformFacts { address: "fake".into(), software: "none".into(), ..PlatformFacts::default() }
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        (self.cannot_migrate && operation == OperationKind::Migrate).then(|| "there is nowhere".into())
    }

    fn migrates_snapshots(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        "run".into()
    }

    fn create(&self, vm: &str, _: Instant) -> Result<(), Failure> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.vms.lock().unwrap().insert(vm.into(), VmState::Off);
        Ok(())
    }

    fn perform(&self, vm: &str, action: &Action, _: Instant) -> Performed {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        if let Some((_, stop)) = self.stop_at.filter(|(at, _)| *at == number) {
            stop.store(true, Ordering::Relaxed);
        }
        let mut watch = Stopwatch::start();
        watch.lap(Phase::Client);
        let result = self.is_away().and_then(|()| self.act(vm, action));
        watch.lap(Phase::Running);
        let mut phases = watch.phases();
        if let Some(takes_ns) = self.takes_ns {
            phases.add(Phase::Running, takes_ns(self.vms.lock().unwrap().len()));
        }
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        Performed { phases, retries: 0, job: None, result }
    }

    fn state(&self, vm: &str, _: Instant) -> Result<Option<VmState>, Failure> {
        self.is_away()?;
        Ok(self.vms.lock().unwrap().get(vm).copied())
    }

    fn list(&self, _: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        self.is_away()?;
        Ok(self.vms.lock().unwrap().iter().map(|(name, state)| (name.clone(), *state)).collect())
    }

    fn sweep(&self, _: Instant) -> Result<usize, Failure> {
        Ok(0)
    }

    fn remove_all(&self, _: Instant) -> Result<usize, Failure> {
        self.is_away()?;
        let mut vms = self.vms.lock().unwrap();
        let count = vms.len();
        vms.clear();
        Ok(count)
    }
}

fn plan(load: OperationsLoad) -> OperationsPlan {
    OperationsPlan {
        mix: Mix::paper().shares().clone(),
        left_out: Vec::new(),
        load,
        vms: vec![8],
        pieces: 3,
        piece_ns: 100_000_000,
        ..synthetic::plan()
    }
}

fn folder(temp: &TempDir, plan: OperationsPlan) -> RunFolder<OperationsRecord> {
    RunFolder::create(&temp.path().join("run"), described(Plan::Operations(plan))).unwrap()
}

fn run(folder: &mut RunFolder<OperationsRecord>, fake: &Fake, stop: &AtomicBool) -> Result<(), StudyError> {
    run_operations(folder, fake, None, &mut Progress { stop, observer: &mut () })
}

#[test]
fn operations_arrive_at_their_rates_are_logged_and_leave_nothing() {
    let temp = tempfile::tempdir().unwrap();
    // Some 50 and 100 operations a piece.
    // VMs and time enough for a busy host.
    let plan = OperationsPlan {
        vms: vec![64],
        piece_ns: 1_000_000_000,
        ..plan(OperationsLoad::Open(vec![3_000.0, 6_000.0]))
    };
    let mut folder = folder(&temp, plan.clone());
    let fake = Fake::default();
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    assert!(fake.vms.lock().unwrap().is_empty() && fake.made.load(Ordering::Relaxed) >= 64);
    assert_eq!(fake.illegal.load(Ordering::Relaxed), 0, "no illegal call");
    let rates: Vec<_> = folder.records().iter().map(|record| record.key.per_minute).collect();
    assert_eq!(rates, [Some(3_000.0), Some(6_000.0), Some(3_000.0)]);
    let first = folder.records()[0].seen().unwrap();
    assert!((20..=90).contains(&first.intended), "{first:?}");
    assert_eq!(first.done() + first.not_issued, first.intended);
    let log = std::fs::read_to_string(folder.path().join("operations/64-vms-0000.jsonl")).unwrap();
    let lines: Vec<OperationLine> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64, first.done());
    assert!(
        lines
            .iter()
            .all(|line| line.intended_ns < 1_000_000_000 && line.phases_ns.get(Phase::Waiting).is_some())
    );
    assert_eq!(analyse_operations(&plan, folder.records()).steps.len(), 2);
}

#[test]
fn clients_of_a_closed_loop_never_have_more_than_one_operation_each() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, OperationsPlan { vms: vec![4, 16], ..plan(OperationsLoad::Closed(3)) });
    let fake = Fake::default();
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    assert_eq!(folder.records().len(), 6);
    // A busy host may leave a piece of 100 ms with a few.
    let done: u64 = folder.records().iter().map(|record| record.measured().unwrap().done()).sum();
    assert!(done > 100, "{done}");
    assert_eq!(fake.illegal.load(Ordering::Relaxed), 0, "no illegal call");
    assert!((1..=3).contains(&fake.most_in_flight.load(Ordering::Relaxed)));
}

#[test]
fn a_run_that_is_stopped_keeps_its_pieces_removes_its_vms_and_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    // VMs enough for a busy host: 32 are started, and some 50 operations are a piece.
    let plan = OperationsPlan { vms: vec![64], ..plan(OperationsLoad::Open(vec![30_000.0])) };
    let mut folder = folder(&temp, plan);
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let stopping = Fake { stop_at: Some((120, stop)), ..Fake::default() };
    let stopped = run(&mut folder, &stopping, stop);
    assert!(stopped.is_err_and(|error| error.is_stopped()));
    let before: Vec<OperationsRecord> = folder.records().to_vec();
    assert!((1..3).contains(&before.len()), "{}", before.len());
    assert!(stopping.vms.lock().unwrap().is_empty(), "what was made is removed");
    run(&mut folder, &Fake::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(folder.records().len(), 3);
    assert_eq!(folder.records()[..before.len()], before[..], "what was measured is kept");
}

#[test]
fn failures_are_counted_by_kind_and_the_run_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, plan(OperationsLoad::Open(vec![30_000.0])));
    let fails = Some((OperationKind::Reconfigure, FailureKind::Busy));
    let fake = Fake { fails, ..Fake::default() };
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    let all: Vec<_> = folder.records().iter().filter_map(OperationsRecord::seen).collect();
    let failed: u64 = all.iter().map(|one| one.failed()).sum();
    assert!(failed > 0 && all.iter().map(|one| one.done()).sum::<u64>() > failed);
    let words: Vec<&String> = all.iter().flat_map(|one| &one.first_failures).collect();
    assert!(words.iter().all(|words| **words == "reconfigure: as was told"), "{words:?}");
}

#[test]
fn vms_that_cannot_be_made_end_the_run_and_leave_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, plan(OperationsLoad::Closed(1)));
    let fails = Some((OperationKind::PowerOn, FailureKind::NoRoom));
    let fake = Fake { fails, ..Fake::default() };
    let error = run(&mut folder, &fake, &AtomicBool::new(false)).unwrap_err();
    assert!(
        matches!(&error, StudyError::Platform(failure) if failure.kind == FailureKind::NoRoom),
        "{error}"
    );
    assert!(fake.vms.lock().unwrap().is_empty());
}

#[test]
fn what_a_platform_lacks_is_said_before_the_run_and_left_out_only_when_told() {
    let fake = Fake { cannot_migrate: true, ..Fake::default() };
    let error = mix_on(&fake, &Mix::paper(), false).unwrap_err().to_string();
    assert!(error.contains("migrate: there is nowhere") && error.contains("--leave-out"), "{error}");
    let (mix, left_out) = mix_on(&fake, &Mix::paper(), true).unwrap();
    assert_eq!((mix.total(), left_out), (26, vec![OperationKind::Migrate]));
    assert_eq!(mix_on(&Fake::default(), &Mix::paper(), false).unwrap().1, []);
}

#[test]
fn the_highest_rate_is_searched_piece_by_piece() {
    let temp = tempfile::tempdir().unwrap();
    let load = OperationsLoad::Max { limit_ns: 10_000_000_000 };
    let plan = OperationsPlan { piece_ns: 20_000_000, most_at_once: 2, ..plan(load) };
    let mut folder = folder(&temp, plan.clone());
    run(&mut folder, &Fake::default(), &AtomicBool::new(false)).unwrap();
    assert!(folder.records()[0].key.per_minute.is_none() && folder.records().len() > 4);
    assert!(folder.records().iter().any(|record| record.key.per_minute.is_some()));
    let again = folder.records().len();
    run(&mut folder, &Fake::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(folder.records().len(), again, "the answer is known");
}

#[test]
fn a_sweep_over_vms_finds_where_latency_bends() {
    let temp = tempfile::tempdir().unwrap();
    let mix = BTreeMap::from([(OperationKind::PowerOn, 1), (OperationKind::PowerOff, 1)]);
    let vms = vec![5, 10, 20, 40, 80];
    let plan = OperationsPlan { mix, vms, piece_ns: 20_000_000, ..plan(OperationsLoad::Closed(2)) };
    let mut folder = folder(&temp, plan.clone());
    // A minute up to 20 VMs, and with the square of their number beyond: what this machine adds does not show.
    let takes_ns = |vms: usize| 60_000_000_000 * (vms.max(20) as u64).pow(2) / 400;
    let fake = Fake { takes_ns: Some(takes_ns), ..Fake::default() };
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    let growth = analyse_operations(&plan, folder.records()).growth;
    for kind in [OperationKind::PowerOn, OperationKind::PowerOff] {
        let found = growth[&kind];
        assert!((found.factor - 16.0).abs() < 0.5, "{found:?}");
        assert!(found.bend.is_some_and(|vms| (vms - 20.0).abs() < 1e-6), "{found:?}");
    }
}

#[test]
fn a_short_outage_is_a_piece_without_a_result_and_the_next_begins_with_known_vms() {
    let temp = tempfile::tempdir().unwrap();
    let load = OperationsLoad::Closed(3);
    let mut folder = folder(&temp, plan(load.clone()));
    let fake = Fake { away: Some((8, AtomicU32::new(24))), ..Fake::default() };
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    let records = folder.records();
    assert_eq!(records.len(), 3);
    // Which piece it is depends on how many operations a busy host does in the first.
    let (why, partly) = records[..2].iter().find_map(OperationsRecord::incomplete).expect("nobody answered");
    assert!(why.starts_with("nobody answered for") && partly.unreachable() > 0, "{why}");
    assert!(partly.first_failures.iter().any(|words| words.contains("nobody answers")), "{partly:?}");
    let last = records[2].measured().expect("the platform is back");
    assert!(last.done() > 0 && last.vms_at_end >= 4, "{last:?}");
    assert_eq!(fake.illegal.load(Ordering::Relaxed), 0, "what happened meanwhile is known");
    assert!(fake.vms.lock().unwrap().is_empty(), "no VM stays");
    assert_eq!(analyse_operations(&plan(load), records).incomplete.len(), 1);
}

#[test]
fn a_server_that_stays_away_ends_a_search_with_its_own_words() {
    let temp = tempfile::tempdir().unwrap();
    let load = OperationsLoad::Max { limit_ns: 10_000_000_000 };
    let mut folder = folder(&temp, OperationsPlan { limit_ns: 1_000_000, ..plan(load) });
    let fake = Fake { away: Some((30, AtomicU32::new(u32::MAX))), ..Fake::default() };
    let error = run(&mut folder, &fake, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("nobody answers"), "{error}");
    assert!(folder.records().len() <= 2 && folder.records().iter().all(|record| record.measured().is_none()));
}

#[test]
fn a_rate_for_which_there_are_too_few_vms_is_no_result() {
    let temp = tempfile::tempdir().unwrap();
    // A VM that runs cannot be started, and nothing stops it.
    let fails = Some((OperationKind::PowerOff, FailureKind::Busy));
    let fake = Fake { fails, ..Fake::default() };
    let mix = BTreeMap::from([(OperationKind::PowerOn, 1), (OperationKind::PowerOff, 1)]);
    let load = OperationsLoad::Open(vec![30_000.0]);
    let mut folder = folder(&temp, OperationsPlan { mix, vms: vec![2], pieces: 2, ..plan(load.clone()) });
    run(&mut folder, &fake, &AtomicBool::new(false)).unwrap();
    let why = folder.records().last().unwrap().incomplete().unwrap().0;
    assert!(why.contains("were not issued") && why.contains("had no VM in a state for them"), "{why}");
}
