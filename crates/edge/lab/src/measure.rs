//! Measures one machine, or several at one agreed moment.
//!
//! ```text
//! prepare all -> clocks -> start at one host instant -> ramp-up -> [ measuring ] -> clocks -> outcomes
//!                                                                  ^ host CPU  ^
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use virtbench_agent::now_ns;
use virtbench_agent::protocol::Job;
use virtbench_host::CpuSample;
use virtbench_record::{
    ClockCheck, HostUse, JobOutcome, LoadOutcome, Measured, MemberStart, ProcessUse, WorkloadOutcome,
};
use virtbench_workload::{JobSpec, LoadSpec, WorkloadSpec};

use crate::clock::{ClockOffset, jump_ns};
use crate::connection::{ConnectionError, Measuring, Stopper};
use crate::cpu_times;
use crate::cpu_times::{Observed, ProcessSample};
use crate::machine::{LabError, Machine};

/// Pings that one synchronisation takes; the quickest counts, and one takes 0.2 ms.
const PINGS: u32 = 25;
/// The most that a far machine is given to hear of the start, in nanoseconds.
const MAX_LEAD_NS: u64 = 2_000_000_000;
/// How often a wish to stop is looked for.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// How long the agents may take, beyond the ramp-up and measuring time that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// To open targets, allocate buffers and make a workload's data.
    pub prepare: Duration,
    /// To complete the last operations, and to do the sums.
    pub grace: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        // The engine gives a stalled target 30 s; its own word comes before our limit.
        Self { prepare: Duration::from_secs(20), grace: Duration::from_secs(45) }
    }
}

/// A job and the machine it is for.
pub struct Assignment<'a> {
    /// The machine that runs the load.
    pub machine: &'a mut dyn Machine,
    /// What. All that run together have the same ramp-up, and those that take a fixed time the same.
    pub spec: JobSpec,
}

/// A kind of job, with what comes of it.
pub trait Kind: Into<JobSpec> {
    /// What comes of it.
    type Outcome;

    /// The outcome, if it is of this kind.
    fn outcome(outcome: JobOutcome) -> Option<Self::Outcome>;
}

impl Kind for LoadSpec {
    type Outcome = LoadOutcome;

    fn outcome(outcome: JobOutcome) -> Option<LoadOutcome> {
        outcome.load()
    }
}

impl Kind for WorkloadSpec {
    type Outcome = WorkloadOutcome;

    fn outcome(outcome: JobOutcome) -> Option<WorkloadOutcome> {
        outcome.workload()
    }
}

/// What was measured together.
#[derive(Debug)]
pub struct MeasuredTogether {
    /// When measuring was to begin, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// How each began; nothing for those that failed.
    pub starts: Vec<Option<MemberStart>>,
    /// Machine by machine, in the order given. That one fails does not end the others.
    pub results: Vec<Result<Measured<JobOutcome>, LabError>>,
}

/// Gives each machine its job, all starting at one moment; the CPU use of the processes `observed` is
/// told apart from the host's. With `stop` set, all are stopped and what was measured so far is
/// returned, marked as interrupted.
///
/// # Errors
/// Nothing was started: a job that cannot be prepared, jobs whose phases differ, or a stop before
/// the start. What fails later fails for its machine alone.
pub fn measure_together(
    mut assignments: Vec<Assignment<'_>>,
    observed: &[Observed],
    limits: TimeLimits,
    stop: &AtomicBool,
) -> Result<MeasuredTogether, LabError> {
    let Some((ramp_ns, time_ns)) = phases(&assignments)? else {
        return Ok(MeasuredTogether { started_unix_ns: unix_ns(), starts: Vec::new(), results: Vec::new() });
    };
    let before = each(&mut assignments, |assignment| ready(assignment, limits));
    let before: Vec<ClockOffset> = before.into_iter().collect::<Result<_, _>>()?;
    let mut stoppers: Vec<Stopper> =
        assignments.iter_mut().map(|assignment| assignment.machine.connection().stopper()).collect();
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::Stopped);
    }

    // Sending takes 0.1 ms a machine; a guest starved of its processor takes longer to hear it, and so does a far machine.
    let farthest_ns = before.iter().map(|clock| 4 * clock.uncertainty_ns).max().unwrap_or(0);
    let start_ns =
        now_ns() + 50_000_000 + 5_000_000 * assignments.len() as u64 + farthest_ns.min(MAX_LEAD_NS);
    let begin_ns = start_ns + ramp_ns;
    let started_unix_ns = unix_ns() + begin_ns.saturating_sub(now_ns());
    let running = AtomicUsize::new(assignments.len());
    let (runs, used) = thread::scope(|scope| {
        let threads: Vec<_> = assignments
            .iter_mut()
            .zip(&before)
            .map(|(Assignment { machine, spec }, clock)| {
                let running = &running;
                scope.spawn(move || {
                    let run = run(*machine, clock, start_ns, spec, limits);
                    running.fetch_sub(1, Ordering::Release);
                    run
                })
            })
            .collect();
        let used = watch(begin_ns, begin_ns + time_ns, observed, &running, stop, &mut stoppers);
        let runs: Vec<_> = threads.into_iter().map(joined).collect();
        (runs, used)
    });
    let (host, processes) = used?;
    let measured = |run: Run| Measured {
        host_elapsed_ns: by_host_clock(run.outcome.elapsed_ns(), run.clock.as_ref()),
        outcome: run.outcome,
        processes: if run.host.is_some() { Vec::new() } else { processes.clone() },
        host: run.host.unwrap_or_else(|| host.clone()),
        clock: run.clock,
    };
    let starts = runs.iter().map(|run| run.as_ref().ok().map(|run| run.start(begin_ns))).collect();
    let results = runs.into_iter().map(|run| run.map(measured)).collect();
    Ok(MeasuredTogether { started_unix_ns, starts, results })
}

/// Measures one machine; returns when measuring began, in nanoseconds since 1970, and the figures.
///
/// # Errors
/// The job cannot be done, the machine fails, or it was stopped before measuring began.
pub fn measure<J: Kind>(
    machine: &mut dyn Machine,
    spec: J,
    limits: TimeLimits,
    stop: &AtomicBool,
) -> Result<(u64, Measured<J::Outcome>), LabError> {
    measure_observed(machine, spec, &[], limits, stop)
}

/// The same, with the CPU use of some processes told apart from the host's.
///
/// # Errors
/// As for [`measure`].
pub fn measure_observed<J: Kind>(
    machine: &mut dyn Machine,
    spec: J,
    observed: &[Observed],
    limits: TimeLimits,
    stop: &AtomicBool,
) -> Result<(u64, Measured<J::Outcome>), LabError> {
    let name = machine.name().to_owned();
    let mut together =
        measure_together(vec![Assignment { machine, spec: spec.into() }], observed, limits, stop)?;
    let measured = together.results.pop().unwrap_or(Err(LabError::Stopped))?;
    let measured = measured.filter_map(J::outcome).ok_or(LabError::OtherOutcome { machine: name })?;
    Ok((together.started_unix_ns, measured))
}

/// Ramp-up of all and the time for which the host is watched, in nanoseconds; nothing if there is
/// nothing to do. Where some take a fixed time it is that, else until the last has ended.
fn phases(assignments: &[Assignment<'_>]) -> Result<Option<(u64, u64)>, LabError> {
    let specs = || assignments.iter().map(|assignment| &assignment.spec);
    let Some(first) = specs().next() else { return Ok(None) };
    let ramp_ns = first.ramp_ns();
    let fixed_ns = specs().find_map(JobSpec::fixed_time_ns);
    let agree = |spec: &JobSpec| {
        spec.ramp_ns() == ramp_ns && spec.fixed_time_ns().is_none_or(|time_ns| Some(time_ns) == fixed_ns)
    };
    if !specs().all(agree) {
        return Err(LabError::PhasesDiffer);
    }
    let time_ns = fixed_ns.or_else(|| specs().map(JobSpec::time_ns).max());
    Ok(time_ns.map(|time_ns| (ramp_ns, time_ns)))
}

/// Does something with every machine at once.
fn each<'a, T: Send>(
    assignments: &mut [Assignment<'a>],
    act: impl Fn(&mut Assignment<'a>) -> Result<T, LabError> + Sync,
) -> Vec<Result<T, LabError>> {
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> =
            assignments.iter_mut().map(|assignment| scope.spawn(move || act(assignment))).collect();
        threads.into_iter().map(joined).collect()
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn ready(assignment: &mut Assignment<'_>, limits: TimeLimits) -> Result<ClockOffset, LabError> {
    let machine = &mut *assignment.machine;
    let job = Job { target: machine.target(), spec: assignment.spec.clone() };
    machine.connection().prepare(job, limits.prepare).map_err(|error| failure(machine, error))?;
    clock_of(machine)
}

fn clock_of(machine: &mut dyn Machine) -> Result<ClockOffset, LabError> {
    if machine.shares_host_clock() {
        return Ok(ClockOffset::same_clock(now_ns()));
    }
    machine.connection().synchronise(PINGS).map_err(|error| failure(machine, error))
}

/// What one machine did.
struct Run {
    /// When it began to measure, by the host's clock.
    began_ns: u64,
    /// The offsets of its clock: before, meanwhile, after.
    offsets: Vec<ClockOffset>,
    outcome: JobOutcome,
    /// What its machine's processors did, where that is not this host.
    host: Option<HostUse>,
    clock: Option<ClockCheck>,
}

impl Run {
    /// How it began, which was to be when the host's clock shows `agreed_ns`.
    fn start(&self, agreed_ns: u64) -> MemberStart {
        let late_ns = i128::from(self.began_ns) - i128::from(agreed_ns);
        MemberStart {
            late_ns: i64::try_from(late_ns).unwrap_or(i64::MAX),
            offset_uncertainty_ns: self.offsets.first().map_or(0, |before| before.uncertainty_ns),
            clock_jump_ns: jump_ns(&self.offsets),
            offsets_measured: u32::try_from(self.offsets.len()).unwrap_or(u32::MAX),
        }
    }
}

fn run(
    machine: &mut dyn Machine,
    before: &ClockOffset,
    start_ns: u64,
    spec: &JobSpec,
    limits: TimeLimits,
) -> Result<Run, LabError> {
    let lead = Duration::from_nanos(start_ns.saturating_sub(now_ns()));
    let ramp_limit = lead + Duration::from_nanos(spec.longest_before_ns()) + limits.grace;
    let (expected, longest) =
        (Duration::from_nanos(spec.expected_ns()), Duration::from_nanos(spec.time_ns()));
    let connection = machine.connection();
    let measuring =
        connection.start(before.agent_ns(start_ns)).and_then(|()| connection.measuring(ramp_limit));
    let far_begin = machine.far_times();
    let (began_ns, (outcome, host)) = measuring
        .and_then(|measuring| match measuring {
            Measuring::Since { clock_ns } => {
                let finished = machine.connection().finished(expected, longest, limits.grace)?;
                Ok(Some((before.host_ns(clock_ns), finished)))
            }
            Measuring::Stopped(_) => Ok(None),
        })
        .map_err(|error| failure(machine, error))?
        .ok_or(LabError::Stopped)?;
    let host = host
        .or_else(|| Some(far_begin?.until(&machine.far_times()?)))
        // This host's processors say nothing of another machine's.
        .or_else(|| machine.facts().map(|_| cpu_times::UNKNOWN));
    if machine.shares_host_clock() {
        return Ok(Run { began_ns, offsets: vec![*before], outcome, host, clock: None });
    }
    let mut offsets = vec![*before];
    offsets.extend(machine.connection().take_offsets());
    let after = clock_of(machine)?;
    offsets.push(after);
    Ok(Run { began_ns, offsets, outcome, host, clock: before.drift_until(&after) })
}

fn failure(machine: &mut dyn Machine, error: ConnectionError) -> LabError {
    LabError::Machine { machine: machine.name().to_owned(), source: machine.explain(error) }
}

/// Samples the host's CPU use over the measuring time, and passes on the wish to stop.
fn watch(
    begin_ns: u64,
    end_ns: u64,
    observed: &[Observed],
    running: &AtomicUsize,
    stop: &AtomicBool,
    stoppers: &mut [Stopper],
) -> Result<(HostUse, Vec<ProcessUse>), LabError> {
    let mut told = false;
    let mut wait_until = |at_ns: u64| {
        while running.load(Ordering::Acquire) > 0 && !told {
            if stop.load(Ordering::Relaxed) {
                told = true;
                // One whose connection is gone has failed already, and says so itself.
                stoppers.iter_mut().for_each(|stopper| drop(stopper.stop()));
            }
            match at_ns.checked_sub(now_ns()) {
                None | Some(0) => break,
                Some(left_ns) => thread::sleep(Duration::from_nanos(left_ns).min(STOP_INTERVAL)),
            }
        }
    };
    wait_until(begin_ns);
    let begin = Samples::take(observed)?;
    wait_until(end_ns);
    let used = begin.until_now(observed)?;
    // Their last operations may take a while; a wish to stop still counts.
    wait_until(u64::MAX);
    Ok(used)
}

/// The accounts of the whole host and of some processes at one instant.
struct Samples {
    host: CpuSample,
    processes: ProcessSample,
}

impl Samples {
    fn take(observed: &[Observed]) -> Result<Self, LabError> {
        Ok(Self { host: CpuSample::take()?, processes: ProcessSample::take(observed) })
    }

    fn until_now(&self, observed: &[Observed]) -> Result<(HostUse, Vec<ProcessUse>), LabError> {
        let later = Self::take(observed)?;
        Ok((self.host.until(&later.host), self.processes.until(&later.processes, observed)))
    }
}

/// What the host uses while nothing is asked of it, over `time`; nothing if `stop` was set meanwhile.
///
/// # Errors
/// The host's accounts cannot be read.
pub fn observe(
    observed: &[Observed],
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<(HostUse, Vec<ProcessUse>)>, LabError> {
    let begin = Samples::take(observed)?;
    let until = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return begin.until_now(observed).map(Some);
        }
        thread::sleep(left.min(STOP_INTERVAL));
    }
    Ok(None)
}

/// A guest's interval in the host's time: its clock may run fast or slow.
fn by_host_clock(elapsed_ns: u64, clock: Option<&ClockCheck>) -> u64 {
    let rate = 1.0 + clock.map_or(0.0, |check| check.drift_ppm) / 1e6;
    if rate <= 0.0 {
        return elapsed_ns;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as it should")]
    let host_ns = (elapsed_ns as f64 / rate).round() as u64;
    host_ns
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
