//! Agents that are threads of the test: what matters here is the host's side.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;

use virtbench_agent::protocol::{FailureKind, Greeting, Reply, Request, TargetRef, VERSION, receive, send};
use virtbench_host::host_facts;
use virtbench_record::{CrossingCost, GuestFacts, HostFacts, TargetFacts, TargetKind};
use virtbench_workload::{AccessLine, AccessSpec};

use super::*;
use crate::connection::Connection;
use crate::cpu_times::FarTimes;
use crate::process::{AgentProcess, MachineError};

/// How a fake agent behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Good,
    /// Its clock runs this much faster than the host's.
    Fast(f64),
    /// Its clock leaps ahead by so many milliseconds after half of the measuring time.
    Leaps(u64),
    /// It begins so many milliseconds after the moment that it was told.
    Late(u64),
    /// It thinks for so many milliseconds before each answer to a ping.
    Slow(u64),
    CannotPrepare,
    /// It hangs up when it should measure.
    Dies,
    /// It never finishes.
    Silent,
}

struct Fake {
    connection: Connection,
    process: AgentProcess,
    greeting: Greeting,
    /// What it is, where it is another machine.
    elsewhere: Option<HostFacts>,
    /// Since when two of that machine's processors compute, where it is told.
    told_since: Option<Instant>,
}

impl Fake {
    fn new(manner: Manner) -> Self {
        let (host, agent) = UnixStream::pair().unwrap();
        thread::spawn(move || play(agent, manner));
        let mut command = Command::new("sleep");
        command.arg("60");
        let greeting = Greeting {
            version: VERSION,
            kernel: String::new(),
            processors: 1,
            memory_bytes: 0,
            clock_source: String::new(),
            crossing: CrossingCost { system_call_ns: 0, page_fault_ns: 0 },
        };
        let process = AgentProcess::spawn(command, Vec::new(), "the fake").unwrap();
        let connection = Connection::new(host).unwrap();
        Self { connection, process, greeting, elsewhere: None, told_since: None }
    }
}

impl Machine for Fake {
    fn name(&self) -> &str {
        "fake"
    }
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
    fn greeting(&self) -> &Greeting {
        &self.greeting
    }
    fn target(&self) -> TargetRef {
        TargetRef::Path("target".into())
    }
    fn guest(&self) -> Option<GuestFacts> {
        None
    }
    fn facts(&self) -> Option<&HostFacts> {
        self.elsewhere.as_ref()
    }
    fn far_times(&self) -> Option<FarTimes> {
        let user_ns = 2 * u64::try_from(self.told_since?.elapsed().as_nanos()).unwrap();
        Some(FarTimes { at: Instant::now(), user_ns, kernel_ns: 0, processors: 7 })
    }
    fn shares_host_clock(&self) -> bool {
        false
    }
    fn processes(&self) -> Vec<u32> {
        vec![self.process.id()]
    }
    fn check(&mut self) -> Result<(), MachineError> {
        self.process.check()
    }
    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.process.explain(error)
    }
    fn shut_down(self: Box<Self>) {}
}

fn play(mut stream: UnixStream, manner: Manner) {
    let origin = now_ns();
    let rate = if let Manner::Fast(rate) = manner { rate } else { 1.0 };
    let leapt = std::cell::Cell::new(0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds, and positive")]
    let clock = || 5_000_000_000 + ((now_ns() - origin) as f64 * rate) as u64 + leapt.get();
    let pong = |stream: &mut UnixStream, id| {
        if let Manner::Slow(ms) = manner {
            thread::sleep(Duration::from_millis(ms));
        }
        send(stream, &Reply::Pong { id, clock_ns: clock() }).unwrap();
    };
    let mut prepared = None;
    while let Ok(request) = receive::<Request>(&mut stream) {
        match request {
            Request::Ping { id } => pong(&mut stream, id),
            Request::Prepare(_) if manner == Manner::CannotPrepare => {
                let message = "the target is a directory".into();
                send(&mut stream, &Reply::Failed { kind: FailureKind::Target, message }).unwrap();
            }
            Request::Prepare(job) => {
                send(&mut stream, &Reply::Prepared { target: Some(target()) }).unwrap();
                let JobSpec::Load(spec) = job.spec else { panic!("no load") };
                prepared = Some(spec);
            }
            Request::Start { at_ns } => {
                let spec = prepared.clone().unwrap();
                let begin_ns = at_ns + spec.ramp_ns;
                thread::sleep(Duration::from_nanos(begin_ns.saturating_sub(clock())));
                if manner == Manner::Dies {
                    return;
                }
                let begin_ns = if let Manner::Late(ms) = manner {
                    thread::sleep(Duration::from_millis(ms));
                    begin_ns + ms * 1_000_000
                } else {
                    begin_ns
                };
                send(&mut stream, &Reply::Measuring { clock_ns: begin_ns }).unwrap();
                let end_ns = clock() + spec.time_ns;
                let mut stopped = false;
                while !stopped && clock() < end_ns + leapt.get() {
                    if let Manner::Leaps(ms) = manner
                        && clock() > end_ns - spec.time_ns / 2
                    {
                        leapt.set(ms * 1_000_000);
                    }
                    let step = Duration::from_nanos((spec.time_ns / 10).min(50_000_000));
                    stream.set_read_timeout(Some(step)).unwrap();
                    match receive::<Request>(&mut stream) {
                        Ok(Request::Ping { id }) => pong(&mut stream, id),
                        Ok(_) => stopped = true,
                        Err(_) => {}
                    }
                }
                stream.set_read_timeout(None).unwrap();
                if manner != Manner::Silent {
                    let elapsed_ns = clock() - begin_ns;
                    let outcome = JobOutcome::Load(Box::new(outcome(spec, elapsed_ns, stopped)));
                    send(&mut stream, &Reply::Finished { outcome, host: None }).unwrap();
                }
            }
            _ => return,
        }
    }
}

fn target() -> TargetFacts {
    TargetFacts {
        path: "target".into(),
        kind: TargetKind::Null,
        size_bytes: 0,
        direct: false,
        alignment_bytes: 1,
    }
}

fn outcome(spec: LoadSpec, elapsed_ns: u64, interrupted: bool) -> LoadOutcome {
    LoadOutcome { elapsed_ns, interrupted, ..LoadOutcome::empty(spec, target()) }
}

fn load(time_ms: u64) -> LoadSpec {
    LoadSpec {
        outstanding: 1,
        workers: 1,
        ramp_ns: 20_000_000,
        time_ns: time_ms * 1_000_000,
        interval_ns: 100_000_000,
        seed: 1,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20)
    }
}

fn limits() -> TimeLimits {
    TimeLimits { prepare: Duration::from_secs(10), grace: Duration::from_secs(10) }
}

fn together(
    fakes: &mut [Fake],
    time_ms: u64,
    limits: TimeLimits,
    stop: &AtomicBool,
) -> Result<MeasuredTogether, LabError> {
    let assignments =
        fakes.iter_mut().map(|machine| Assignment { machine, spec: load(time_ms).into() }).collect();
    measure_together(assignments, &[], limits, stop)
}

#[test]
fn several_machines_are_measured_at_one_moment() {
    let mut fakes = [Fake::new(Manner::Good), Fake::new(Manner::Good), Fake::new(Manner::Good)];
    let measured = together(&mut fakes, 100, limits(), &AtomicBool::new(false)).unwrap();
    assert_eq!(measured.results.len(), 3);
    for result in measured.results {
        let measured = result.unwrap().filter_map(JobOutcome::load).unwrap();
        assert!(measured.outcome.elapsed_ns >= 90_000_000 && !measured.outcome.interrupted);
        assert!(measured.host.processors > 0 && measured.host.cpu_percent.is_finite());
        assert!(!measured.clock.unwrap().is_suspect());
    }
}

#[test]
fn what_this_host_computes_is_not_said_of_another_machine() {
    let mut fakes = [Fake::new(Manner::Good), Fake::new(Manner::Good)];
    fakes.iter_mut().for_each(|fake| fake.elsewhere = Some(host_facts(std::path::Path::new("/"))));
    fakes[1].told_since = Some(Instant::now());
    let measured = together(&mut fakes, 100, limits(), &AtomicBool::new(false)).unwrap();
    let [silent, told] = [0, 1].map(|index: usize| measured.results[index].as_ref().unwrap().host.clone());
    assert_eq!((silent.processors, silent.cpu_percent), (0, 0.0), "it is not reported");
    assert_eq!(told.processors, 7);
    assert!((150.0..250.0).contains(&told.cpu_percent), "{told:?}");
}

#[test]
fn a_clock_that_runs_fast_is_found_out_and_corrected() {
    let mut fakes = [Fake::new(Manner::Fast(1.5))];
    let measured = together(&mut fakes, 200, limits(), &AtomicBool::new(false)).unwrap();
    let measured = measured.results.into_iter().next().unwrap().unwrap();
    assert!(measured.clock.as_ref().unwrap().is_suspect(), "{:?}", measured.clock);
    let ratio = measured.outcome.elapsed_ns() as f64 / measured.host_elapsed_ns as f64;
    assert!((1.4..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn how_late_each_machine_began_and_how_well_its_clock_is_known_is_told() {
    let mut fakes = [Fake::new(Manner::Good), Fake::new(Manner::Late(200)), Fake::new(Manner::Slow(20))];
    let measured = together(&mut fakes, 300, limits(), &AtomicBool::new(false)).unwrap();
    let starts: Vec<MemberStart> = measured.starts.iter().map(|start| start.unwrap()).collect();
    // What they say of themselves, as well as their clocks are known.
    for (start, expected) in [(starts[0], 0), (starts[1], 200_000_000)] {
        assert!(start.late_ns.abs_diff(expected) <= start.offset_uncertainty_ns, "{start:?}");
    }
    let uncertainty_ns = |index: usize| starts[index].offset_uncertainty_ns;
    assert!(uncertainty_ns(2) >= 9_000_000 && uncertainty_ns(0) < 9_000_000, "{starts:?}");
    assert!(starts[2].late_ns.unsigned_abs() <= uncertainty_ns(2), "{starts:?}");
    assert!(
        starts.iter().all(|start| start.clock_jump_ns.is_none() && start.offsets_measured >= 2),
        "{starts:?}"
    );
}

#[test]
fn a_clock_that_leaps_in_the_middle_is_found_out() {
    let mut fakes = [Fake::new(Manner::Leaps(700)), Fake::new(Manner::Dies)];
    let measured = together(&mut fakes, 600, limits(), &AtomicBool::new(false)).unwrap();
    let start = measured.starts[0].unwrap();
    // Looked at before, after, and meanwhile.
    assert!(start.offsets_measured > 2, "{start:?}");
    let jump_ns = start.clock_jump_ns.unwrap();
    assert!(jump_ns.abs_diff(700_000_000) < 50_000_000, "{jump_ns}");
    assert_eq!(measured.starts[1], None, "the dead are not judged");
}

#[test]
fn a_machine_that_dies_leaves_the_others_their_results() {
    let mut fakes = [Fake::new(Manner::Dies), Fake::new(Manner::Good)];
    let measured = together(&mut fakes, 50, limits(), &AtomicBool::new(false)).unwrap();
    assert!(matches!(measured.results[0], Err(LabError::Machine { .. })));
    assert!(measured.results[1].is_ok());
}

#[test]
fn a_target_that_cannot_be_used_is_refused_before_the_start() {
    let mut fakes = [Fake::new(Manner::Good), Fake::new(Manner::CannotPrepare)];
    let error = together(&mut fakes, 50, limits(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "fake: the target is a directory");
    let refused =
        |source: &MachineError| matches!(source, MachineError::Refused { kind: FailureKind::Target, .. });
    assert!(matches!(&error, LabError::Machine { source, .. } if refused(source)));
}

#[test]
fn an_agent_that_never_finishes_is_not_waited_for_without_end() {
    let mut fakes = [Fake::new(Manner::Silent)];
    let limits = TimeLimits { grace: Duration::from_millis(200), ..limits() };
    let measured = together(&mut fakes, 20, limits, &AtomicBool::new(false)).unwrap();
    let error = measured.results.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("did not finish the load within 0.22 s"), "{error}");
}

#[test]
fn a_stop_brings_what_was_measured_so_far() {
    let stop = Arc::new(AtomicBool::new(false));
    let later = Arc::clone(&stop);
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        later.store(true, Ordering::Relaxed);
    });
    let mut fakes = [Fake::new(Manner::Good)];
    let measured = together(&mut fakes, 3_600_000, limits(), &stop).unwrap();
    let JobOutcome::Load(outcome) = &measured.results[0].as_ref().unwrap().outcome else { panic!() };
    assert!(outcome.interrupted);
}

#[test]
fn a_stop_before_the_start_starts_nothing() {
    let mut fakes = [Fake::new(Manner::Good)];
    let result = together(&mut fakes, 50, limits(), &AtomicBool::new(true));
    assert!(matches!(result, Err(LabError::Stopped)));
}

#[test]
fn phases_must_agree() {
    let mut fakes = [Fake::new(Manner::Good), Fake::new(Manner::Good)];
    let assignments = fakes.iter_mut().zip([50, 60]);
    let assignments =
        assignments.map(|(machine, time)| Assignment { machine, spec: load(time).into() }).collect();
    let result = measure_together(assignments, &[], limits(), &AtomicBool::new(false));
    assert!(matches!(result, Err(LabError::PhasesDiffer)));
}

#[test]
fn host_time_follows_from_the_drift() {
    let check = |drift_ppm| ClockCheck { drift_ppm, uncertainty_ppm: 0.0 };
    assert_eq!(by_host_clock(1_500, Some(&check(500_000.0))), 1_000);
    assert_eq!(by_host_clock(1_000, None), 1_000);
    assert_eq!(by_host_clock(1_000, Some(&check(-2e6))), 1_000);
}
