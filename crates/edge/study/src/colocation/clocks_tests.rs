//! Guests whose clock lies, made of threads of the test: what a set of measurements makes of them.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;
use virtbench_agent::protocol::{Reply, Request, receive, send};
use virtbench_lab::Machine;
use virtbench_record::{
    ColocationPlan, JobOutcome, LoadOutcome, MemberPlan, Plan, SetRole, TargetFacts, TargetKind,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::*;
use crate::fake_machine::FakeMachine;
use crate::folder::tests::described;

/// How the clock of a guest runs from one of its boots on.
#[derive(Debug, Clone, Copy)]
enum Clock {
    True,
    /// So many times as fast as the host's.
    Fast(f64),
    /// It leaps ahead by this while the guest is measured.
    Leaps(Duration),
}

/// Boots a guest with one clock after the other; the last one stays.
struct Boots {
    clocks: Vec<Clock>,
    count: Arc<AtomicU32>,
}

impl Environment for Boots {
    fn name(&self) -> &str {
        "vm1"
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let boot = self.count.fetch_add(1, Ordering::Relaxed) as usize;
        let clock = self.clocks[boot.min(self.clocks.len() - 1)];
        Ok(FakeMachine::boxed(move |agent| play(agent, clock)))
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
            Request::Ping { id } => send(&mut stream, &Reply::Pong { id, clock_ns }),
            Request::Prepare(job) => {
                let JobSpec::Load(load) = job.spec else { panic!("no load") };
                spec = Some(load);
                send(&mut stream, &Reply::Prepared { target: None })
            }
            Request::Start { .. } => {
                let spec = spec.take().unwrap();
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

/// Measures one guest whose boots have these clocks; its record, what the run says of it, and how often
/// it was booted.
fn measured(clocks: &[Clock]) -> (SetRecord, Vec<String>, u32) {
    let dir = TempDir::new().unwrap();
    let members = vec![MemberPlan { vm: "vm1".into(), workload: 0, share_percent: None }];
    let provenance = described(Plan::Neighbours(ColocationPlan {
        workloads: vec!["load".into()],
        sets: vec![SetPlan { name: "1".into(), role: SetRole::Alone, members }],
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
    }));
    let mut folder: RunFolder<SetRecord> = RunFolder::create(&dir.path().join("run"), provenance).unwrap();
    let spec = LoadSpec {
        ramp_ns: 0,
        time_ns: 200_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20)
    };
    let count = Arc::new(AtomicU32::new(0));
    let boots = Boots { clocks: clocks.to_vec(), count: Arc::clone(&count) };
    let mut environments: Vec<Box<dyn Environment>> = vec![Box::new(boots)];
    let stop = AtomicBool::new(false);
    measure_sets(&mut folder, &mut environments, &[spec.into()], &stop, &mut ()).unwrap();
    let record = folder.records()[0].clone();
    (record, folder.provenance().notes.clone(), count.load(Ordering::Relaxed))
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
