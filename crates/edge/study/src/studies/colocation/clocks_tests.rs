//! Guests whose clock lies, made of threads of the test: what a set of measurements makes of them.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;
use virtbench_agent::protocol::{Reply, Request, receive, send};
use virtbench_lab::Machine;
use virtbench_record::{
    ColocationPlan, Home, JobOutcome, LoadOutcome, MemberPlan, MemberStart, Plan, SetRole, TargetFacts,
    TargetKind,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::*;
use crate::fake_machine::FakeMachine;
use crate::runner::begun_run::described;

/// How the clock of a guest runs from one of its boots on.
#[derive(Debug, Clone, Copy)]
enum Clock {
    True,
    /// So many times as fast as the host's.
    Fast(f64),
    /// It leaps ahead by this while the guest is measured.
    Leaps(Duration),
    /// It runs true, and each answer takes this long.
    Slow(Duration),
    /// It runs true, and the guest begins this late.
    Late(Duration),
    /// It ends when it is to begin.
    Dies,
}

/// Boots a guest with one clock after the other; the last one stays.
struct Boots {
    name: String,
    clocks: Vec<Clock>,
    count: Arc<AtomicU32>,
}

impl Environment for Boots {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let boot = self.count.fetch_add(1, Ordering::Relaxed) as usize;
        let clock = self.clocks[boot.min(self.clocks.len() - 1)];
        Ok(FakeMachine::named(&self.name, move |agent| play(agent, clock)))
    }
}

/// An agent that does nothing but tell the time.
fn play(mut stream: UnixStream, manner: Clock) {
    let begun = Instant::now();
    let rate = if let Clock::Fast(rate) = manner { rate } else { 1.0 };
    let mut leapt = Duration::ZERO;
    let mut spec = None;
    while let Ok(request) = receive::<Request>(&mut stream) {
        let clock_ns = u64::try_from((begun.elapsed().mul_f64(rate) + leapt).as_nanos()).unwrap();
        let sent = match request {
            Request::Ping { id } => {
                if let Clock::Slow(by) = manner {
                    thread::sleep(by);
                }
                send(&mut stream, &Reply::Pong { id, clock_ns })
            }
            Request::Prepare(job) => {
                let JobSpec::Load(load) = job.spec else { panic!("no load") };
                spec = Some(load);
                send(&mut stream, &Reply::Prepared { target: None })
            }
            Request::Start { at_ns } => {
                let spec = spec.take().unwrap();
                if matches!(manner, Clock::Dies) {
                    return;
                }
                let late = if let Clock::Late(by) = manner { by } else { Duration::ZERO };
                thread::sleep(Duration::from_nanos(at_ns.saturating_sub(clock_ns)).div_f64(rate) + late);
                let clock_ns = u64::try_from((begun.elapsed().mul_f64(rate) + leapt).as_nanos()).unwrap();
                send(&mut stream, &Reply::Measuring { clock_ns }).unwrap();
                thread::sleep(Duration::from_nanos(spec.time_ns));
                if let Clock::Leaps(by) = manner {
                    leapt += by;
                }
                send(
                    &mut stream,
                    &Reply::Finished { outcome: JobOutcome::Load(Box::new(outcome(spec))), host: None },
                )
            }
            _ => return,
        };
        sent.unwrap();
    }
}

fn outcome(spec: LoadSpec) -> LoadOutcome {
    let target = TargetFacts {
        path: "target".into(),
        kind: TargetKind::Null,
        size_bytes: 0,
        direct: false,
        alignment_bytes: 1,
    };
    LoadOutcome { elapsed_ns: spec.time_ns, ..LoadOutcome::empty(spec, target) }
}

/// What a run of one set made of its machines.
struct Measured {
    record: SetRecord,
    notes: Vec<String>,
    boots: Vec<u32>,
}

/// Measures machines whose boots have these clocks, in environments or as guests of this host.
fn measured_together(machines: &[&[Clock]], in_environments: bool, time: Duration) -> Measured {
    let dir = TempDir::new().unwrap();
    let vms: Vec<String> = (1..=machines.len()).map(|number| format!("vm{number}")).collect();
    let member = |vm: &String| MemberPlan { vm: vm.clone(), workload: 0, share_percent: None };
    let home =
        |vm: &String| Home { vm: vm.clone(), environment: "metal".into(), uri: "ssh://metal/srv".into() };
    let provenance = described(Plan::Neighbours(ColocationPlan {
        workloads: vec!["load".into()],
        sets: vec![SetPlan {
            name: "1".into(),
            role: SetRole::Alone,
            members: vms.iter().map(member).collect(),
        }],
        repetitions: 1,
        ramp_ns: 0,
        time_ns: 1_000_000,
        vcpus: 1,
        memory_bytes: 1,
        pinned: false,
        disk: "virtio-blk".into(),
        size_bytes: 1 << 20,
        filesystem: None,
        seed: 1,
        homes: if in_environments { vms.iter().map(home).collect() } else { Vec::new() },
    }));
    let mut folder: RunFolder<SetRecord> = RunFolder::create(&dir.path().join("run"), provenance).unwrap();
    let spec = LoadSpec {
        ramp_ns: 0,
        time_ns: u64::try_from(time.as_nanos()).unwrap(),
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20)
    };
    let counts: Vec<Arc<AtomicU32>> = machines.iter().map(|_| Arc::default()).collect();
    let boots = vms.iter().zip(machines).zip(&counts);
    let mut environments: Vec<Box<dyn Environment>> = boots
        .map(|((vm, clocks), count)| -> Box<dyn Environment> {
            Box::new(Boots { name: vm.clone(), clocks: clocks.to_vec(), count: Arc::clone(count) })
        })
        .collect();
    let stop = AtomicBool::new(false);
    measure_sets(&mut folder, &mut environments, &[spec.into()], &stop, &mut ()).unwrap();
    Measured {
        record: folder.records()[0].clone(),
        notes: folder.provenance().notes.clone(),
        boots: counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
    }
}

/// Measures one guest whose boots have these clocks; its record, what the run says of it, and how often
/// it was booted.
fn measured(clocks: &[Clock]) -> (SetRecord, Vec<String>, u32) {
    let Measured { record, notes, boots } = measured_together(&[clocks], false, Duration::from_millis(200));
    (record, notes, boots[0])
}

fn starts(record: &SetRecord) -> Vec<MemberStart> {
    record.members.iter().map(|member| member.measured().unwrap().start.unwrap()).collect()
}

#[test]
fn a_machine_that_begins_late_marks_its_set() {
    let time = Duration::from_millis(200);
    let late = [Clock::Late(Duration::from_millis(100))];
    let found = measured_together(&[&[Clock::True], &late], true, time);
    let (start, members) = (found.record.start.unwrap(), starts(&found.record));
    assert!(!start.is_enough && start.uncertainty_ns >= 99_000_000, "{start:?}");
    assert!(start.needed_ns.abs_diff(2_000_000) < 100_000, "a hundredth of the time: {start:?}");
    assert!(members[1].late_ns >= 99_000_000 && members[0].late_ns < members[1].late_ns, "{members:?}");
    assert!(found.record.is_whole(), "what is marked is not thrown away");
}

#[test]
fn a_machine_that_answers_slowly_marks_its_set() {
    let slow = [Clock::Slow(Duration::from_millis(10))];
    let found = measured_together(&[&slow, &[Clock::True]], true, Duration::from_millis(200));
    let (start, members) = (found.record.start.unwrap(), starts(&found.record));
    assert!(members[0].offset_uncertainty_ns >= 5_000_000, "{members:?}");
    assert!(!start.is_enough && start.uncertainty_ns >= 5_000_000, "{start:?}");
    assert_eq!(found.record.attempts, 1);
}

#[test]
fn a_clock_that_jumps_by_less_than_makes_it_useless_is_said() {
    let leaps = [Clock::Leaps(Duration::from_millis(9))];
    let found = measured_together(&[&leaps, &[Clock::True]], true, Duration::from_secs(1));
    let members = starts(&found.record);
    let jump_ns = members[0].clock_jump_ns.unwrap();
    assert!(jump_ns.abs_diff(9_000_000) < 2_000_000, "{jump_ns}");
    assert_eq!((found.record.attempts, members[1].clock_jump_ns), (1, None));
    assert!(found.record.start.unwrap().uncertainty_ns >= 7_000_000, "{:?}", found.record.start);
}

#[test]
fn a_clock_that_leaps_far_has_its_machine_started_anew_also_in_environments() {
    let leaps = [Clock::Leaps(Duration::from_secs(3600)), Clock::True];
    let found = measured_together(&[&leaps, &[Clock::True]], true, Duration::from_millis(200));
    assert_eq!((found.record.attempts, found.boots), (2, vec![2, 1]));
    assert!(found.notes[0].contains("the clock of vm1 (metal) ran wrong"), "{:?}", found.notes);
}

#[test]
fn a_machine_that_is_lost_leaves_the_others_their_results_and_their_start() {
    let found = measured_together(
        &[&[Clock::True], &[Clock::Dies], &[Clock::True], &[Clock::True]],
        true,
        Duration::from_millis(200),
    );
    let measured = found.record.members.iter().map(|member| member.usable().is_some());
    assert_eq!(measured.collect::<Vec<_>>(), [true, false, true, true], "{:?}", found.record);
    assert!(found.record.start.is_some());
}

#[test]
fn guests_of_this_host_are_recorded_as_ever() {
    let found = measured_together(&[&[Clock::True], &[Clock::True]], false, Duration::from_millis(200));
    assert_eq!(found.record.start, None);
    let text = serde_json::to_string(&found.record).unwrap();
    assert!(!text.contains("late_ns") && !text.contains("\"start\""), "{text}");
}

#[test]
fn a_guest_whose_clock_runs_wrong_or_leaps_is_booted_anew_and_measured_again() {
    for wrong in [Clock::Fast(1.5), Clock::Fast(0.5), Clock::Leaps(Duration::from_secs(3600))] {
        let (record, notes, boots) = measured(&[wrong, Clock::True]);
        assert_eq!((record.attempts, boots), (2, 2), "{wrong:?}");
        assert!(record.members[0].usable().is_some(), "{wrong:?}: {record:?}");
        assert!(notes.iter().any(|note| note.contains("the clock of vm1 ran wrong")), "{notes:?}");
    }
}

#[test]
fn a_clock_that_stays_wrong_is_tried_three_times_then_marked_and_not_used() {
    let (record, notes, boots) = measured(&[Clock::Fast(1.5)]);
    assert_eq!((record.attempts, boots, notes.len()), (3, 3, 2));
    assert!(record.members[0].measured().is_some() && record.members[0].usable().is_none());
}

#[test]
fn a_clock_that_runs_true_is_left_alone() {
    let (record, notes, boots) = measured(&[Clock::True]);
    assert_eq!((record.attempts, boots, notes.len()), (1, 1, 0));
}
