//! A whole load: starts the workers together, waits for them, merges what they recorded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use virtbench_record::{InFlightAtEnd, LoadOutcome, OpenLoop, Replayed, TargetKind, Verification};
use virtbench_units::{LatencySummary, SeedSequence, format_latency_ns};
use virtbench_workload::{EngineKind, LoadSpec, Pace, Recording};

use crate::backend::Opened;
use crate::buffers::Buffers;
use crate::clock::{monotonic_ns, sleep_until};
use crate::error::{EngineError, resource};
use crate::flow::Flow;
use crate::live::{LiveCounters, LiveSample};
use crate::members::{Member, WorkerJob, gather};
use crate::open_loop::{Moments, OpenLoopCounts};
use crate::recorder::{MAX_INTERVALS, Recorder, stopped_keeping_up};
use crate::target::Target;
use crate::verify::{
    CheckRegion, FinalFlush, Ledger, Moment, Sidecar, begin, block_count, chunk_bytes, load,
};
use crate::worker::WorkerReport;

/// Reads in flight while a region is verified.
const CHECK_OUTSTANDING: u32 = 16;

/// What the caller holds of a running load.
#[derive(Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    finished: AtomicBool,
    completed: Vec<Arc<AtomicU64>>,
    /// Empty unless the load is watched closely.
    live: Vec<Arc<LiveCounters>>,
    flow: Option<Flow>,
}

impl Control {
    /// A control for loads of up to this many workers.
    #[must_use]
    pub fn new(workers: u32) -> Self {
        Self { completed: (0..workers).map(|_| Arc::default()).collect(), ..Self::default() }
    }

    /// A control that can be asked what the latencies are like while the load runs, for a few
    /// nanoseconds an operation.
    #[must_use]
    pub fn with_live(workers: u32) -> Self {
        Self { live: (0..workers).map(|_| Arc::default()).collect(), ..Self::new(workers) }
    }

    /// Keeps the load's workers in step with the others of a flow.
    #[must_use]
    pub fn in_flow(self, flow: Option<Flow>) -> Self {
        Self { flow, ..self }
    }

    /// Ends the load early; what was measured is kept.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the load because it has reached what it was for: it does not count as interrupted.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Whether the load is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Where a worker counts the operations it has completed.
    #[must_use]
    pub fn counter(&self, worker: usize) -> Arc<AtomicU64> {
        self.completed.get(worker).cloned().unwrap_or_default()
    }

    /// Operations completed so far, ramp-up included.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// What has completed so far; zero unless made by [`Control::with_live`].
    #[must_use]
    pub fn live(&self) -> LiveSample {
        let mut sample = LiveSample::default();
        self.live.iter().for_each(|counters| counters.add_to(&mut sample));
        sample
    }
}

/// Applies `spec` to `target`. Ramp-up begins when the monotonic clock shows `start_at_ns`, or once
/// all workers are ready if that is later; once it is over, `on_measuring` is told when that was by the clock. Operations count
/// from that moment on, however late a waiting thread wakes.
///
/// With `spec.verify`, the region is read once more after the load. A worker of the blocking engine
/// whose operation exceeds `spec.timeout_ns` is left behind: its thread ends when the target answers.
///
/// # Errors
/// The load is not valid or does not fit the target, or the kernel refuses threads, memory or rings.
pub fn run(
    spec: &LoadSpec,
    target: &Target,
    control: &Control,
    start_at_ns: u64,
    on_measuring: impl FnOnce(u64),
) -> Result<LoadOutcome, EngineError> {
    spec.validate()?;
    target.check_fit(spec).map_err(EngineError::Misfit)?;
    let (ledger, sidecar) = ledger(spec, target)?.unzip();
    let interval_ns = spec.interval_ns.max(spec.time_ns.div_ceil(MAX_INTERVALS as u64));
    let mut seeds = SeedSequence::new(!spec.seed);
    let shared = Arc::new(spec.clone());
    let (ready, all_ready) = mpsc::channel();
    let mut starts = Vec::new();
    let mut members = Vec::new();
    for index in 0..spec.workers {
        let (start, started) = mpsc::channel::<Moments>();
        starts.push(start);
        let job = WorkerJob {
            spec: Arc::clone(&shared),
            target: target.clone(),
            stop: Arc::clone(&control.stop),
            completed: control.counter(index as usize),
            live: control.live.get(index as usize).cloned(),
            parking: Arc::default(),
            ledger: ledger.clone(),
            flow: control.flow.clone(),
            index,
            interval_ns,
            buffer_seed: seeds.next_seed(),
        };
        members.push(Member::start(job, ready.clone(), started)?);
    }
    drop(ready);
    let notes = await_ready(&all_ready, members.len(), target)?;
    let start_ns = start_at_ns.max(monotonic_ns());
    let begin_ns = start_ns + spec.ramp_ns;
    let moments = Moments { start_ns, begin_ns, end_ns: begin_ns + spec.time_ns };
    for start in &starts {
        // A worker that is gone reports its own error below.
        let _ = start.send(moments);
    }
    while monotonic_ns() < begin_ns && !control.stop.load(Ordering::Relaxed) {
        sleep_until(begin_ns.min(monotonic_ns() + 50_000_000));
    }
    on_measuring(begin_ns.min(monotonic_ns()));
    let (reports, stood_still) = gather(&mut members, spec.timeout_ns, &control.stop)?;
    let notes = notes.into_iter().chain(stood_still).collect();
    let gave_up = reports.iter().any(|report| report.gave_up.is_some());
    let mut outcome = merge(spec, target, moments, interval_ns, &reports, notes);
    if spec.flush_at_end && !gave_up {
        flush_at_end(target, &mut outcome);
    }
    if control.finished.load(Ordering::Relaxed) {
        outcome.interrupted = gave_up;
    }
    if let (Some(ledger), Some(found)) = (ledger, &mut outcome.verify) {
        if !gave_up && !final_flush(spec, target, &ledger)? {
            outcome
                .notes
                .push("the target could not be flushed in the end: --verify-only may miss losses".into());
        }
        // A target that stalled would only stall again, and a user who interrupts wants to go.
        if !outcome.interrupted {
            let pass = check_region(spec, target, control, Some((Arc::clone(&ledger), Moment::After)))?;
            found.merge(&pass);
        }
        if let Some(sidecar) = sidecar.flatten() {
            sidecar.finish(&ledger, spec)?;
        }
        if !found.complete {
            outcome.notes.push("the region was not read whole after the load: losses may be missed".into());
        }
    }
    Ok(outcome)
}

/// Waits until every worker is ready; what a reader of the figures should know.
fn await_ready(
    all_ready: &mpsc::Receiver<Result<Option<String>, EngineError>>,
    workers: usize,
    target: &Target,
) -> Result<Vec<String>, EngineError> {
    let mut notes = target.notes().to_vec();
    for report in all_ready.iter().take(workers) {
        if let Some(note) = report?.filter(|note| !notes.contains(note)) {
            notes.push(note);
        }
    }
    Ok(notes)
}

/// Makes durable what a load has written, after measuring.
fn flush_at_end(target: &Target, outcome: &mut LoadOutcome) {
    if let Err(error) = target.flush() {
        outcome.notes.push(format!("the flush in the end failed: {error}"));
        outcome.errors += 1;
    }
}

/// What is on a target that an earlier load wrote.
#[derive(Debug)]
pub struct Verified {
    /// What was found.
    pub found: Verification,
    /// What it rests on, where that is not the ledger of a load that ended.
    pub note: Option<String>,
}

/// Checks the region of a target that an earlier load with `verify` and the same seed, block sizes and
/// alignments has written, without writing. The ledger that the load left says what each block must
/// hold; without one, torn, misplaced, foreign and corrupt blocks are found, lost writes are not.
///
/// # Errors
/// As [`run`]; the ledger is damaged or of another load.
pub fn verify(spec: &LoadSpec, target: &Target, control: &Control) -> Result<Verified, EngineError> {
    spec.validate()?;
    target.check_fit(spec).map_err(EngineError::Misfit)?;
    refuse_null(target)?;
    let kept = target.ledger_path().map(|path| load(path, spec)).transpose()?.flatten();
    let (ledger, note) = match kept {
        Some((ledger, note)) => (Some((Arc::new(ledger), Moment::Later)), note),
        None => {
            let place = target.ledger_path().map_or_else(
                || "none was named (--ledger)".to_owned(),
                |path| format!("there is none at {}", path.display()),
            );
            let note = format!(
                "no ledger of an earlier load: {place}. Blocks are judged by themselves: lost writes are not found"
            );
            (None, Some(note))
        }
    };
    Ok(Verified { found: check_region(spec, target, control, ledger)?, note })
}

fn refuse_null(target: &Target) -> Result<(), EngineError> {
    if target.facts().kind == TargetKind::Null {
        return Err(EngineError::Misfit(
            "--verify needs a target that keeps what is written: null does not".into(),
        ));
    }
    Ok(())
}

/// A ledger, and where it is kept, if anywhere.
type KeptLedger = (Arc<Ledger>, Option<Sidecar>);

/// The ledger of a load that verifies, and where it is kept, if anywhere.
fn ledger(spec: &LoadSpec, target: &Target) -> Result<Option<KeptLedger>, EngineError> {
    if !spec.verify {
        return Ok(None);
    }
    refuse_null(target)?;
    let blocks = block_count(spec).map_err(EngineError::Misfit)?;
    Ok(Some(match target.ledger_path() {
        Some(path) => {
            let (ledger, sidecar) = begin(path, spec, blocks)?;
            (Arc::new(ledger), Some(sidecar))
        }
        None => (Arc::new(Ledger::new(spec).map_err(EngineError::Misfit)?), None),
    }))
}

/// Makes durable what the load has written; answers whether that succeeded.
fn final_flush(spec: &LoadSpec, target: &Target, ledger: &Ledger) -> Result<bool, EngineError> {
    let number = ledger.flushing();
    let mut buffers = Buffers::new(1, 512, 0).map_err(|source| resource("memory for buffers", source))?;
    // A server that has gone away in the meantime says nothing against the load.
    let Ok((backend, _)) = Opened::open(target, spec, &mut buffers, 1) else { return Ok(false) };
    let flushed = backend.perform(FinalFlush { buffers, timeout_ns: spec.timeout_ns }).unwrap_or(false);
    if flushed {
        ledger.flushed(number);
    }
    Ok(flushed)
}

#[allow(clippy::cast_possible_truncation)]
fn check_region(
    spec: &LoadSpec,
    target: &Target,
    control: &Control,
    ledger: Option<(Arc<Ledger>, Moment)>,
) -> Result<Verification, EngineError> {
    let moment = ledger.as_ref().map_or(Moment::After, |(_, moment)| *moment);
    let ledger = ledger.map(|(ledger, _)| ledger);
    let slots = if spec.engine == EngineKind::Psync { 1 } else { CHECK_OUTSTANDING };
    let chunk_bytes = chunk_bytes(spec, target.max_request_bytes());
    let mut buffers = Buffers::new(slots as usize, chunk_bytes as usize, 0)
        .map_err(|source| resource("memory for buffers", source))?;
    let (backend, _) = Opened::open(target, spec, &mut buffers, slots)?;
    backend
        .perform(CheckRegion { spec, ledger, moment, buffers, slots, chunk_bytes, stop: &control.stop })
        .map_err(|source| resource("reading the region", source))
}

/// Merges the reports of all workers.
pub(crate) fn merge(
    spec: &LoadSpec,
    target: &Target,
    moments: Moments,
    interval_ns: u64,
    reports: &[WorkerReport],
    mut notes: Vec<String>,
) -> LoadOutcome {
    let stopped_ns = reports.iter().map(|report| report.stopped_ns).max().unwrap_or(moments.end_ns);
    let elapsed_ns = stopped_ns.saturating_sub(moments.begin_ns);
    let own_cpu_ns =
        reports.iter().fold([0, 0], |sum, report| [sum[0] + report.cpu_ns[0], sum[1] + report.cpu_ns[1]]);
    for reason in reports.iter().flat_map(|report| report.gave_up.iter().chain(&report.clock_note)) {
        if !notes.contains(reason) {
            notes.push(reason.clone());
        }
    }
    let mut all = Recorder::new(moments.begin_ns, moments.end_ns, interval_ns, spec.access.lines.len());
    reports.iter().for_each(|report| all.merge(&report.recorder));
    let [total, read, write, trim, flush] = all.stats(elapsed_ns);
    let error_kinds = all.error_kinds();
    let paced = spec.rate.is_some() || spec.trace.as_ref().is_some_and(|trace| trace.pace != Pace::Max);
    let in_flight = all.in_flight_at_end();
    let open_loop = paced.then(|| open_loop(spec, &all, reports, in_flight.overdue));
    notes
        .extend(open_loop.as_ref().and_then(|open_loop| saturation_note(spec, open_loop, in_flight.overdue)));
    notes.extend(tail_note(total.latency_ns.as_ref(), &in_flight));
    let replay = spec.trace.as_ref().map(|trace| replayed(trace, reports));
    LoadOutcome {
        total,
        read,
        write,
        trim: spec.access.lines.iter().any(|line| line.trim_percent > 0.0).then_some(trim),
        flush: spec.flushes().then_some(flush),
        lines: all.line_stats(elapsed_ns),
        in_flight_at_end: Some(in_flight),
        open_loop,
        replay,
        verify: verification(reports),
        errors: error_kinds.values().sum(),
        error_kinds,
        elapsed_ns,
        interrupted: reports.iter().any(|report| report.was_cut_short(moments)),
        own_cpu_ns,
        intervals: all.series(elapsed_ns),
        target: target.facts().clone(),
        spec: spec.clone(),
        seed: spec.seed,
        notes,
    }
}

fn replayed(trace: &Recording, reports: &[WorkerReport]) -> Replayed {
    let parts = || reports.iter().map(|report| report.replay.unwrap_or_default());
    Replayed {
        operations: trace.operations,
        started: parts().map(|part| part.started).sum(),
        whole: parts().all(|part| part.whole),
    }
}

fn open_loop(spec: &LoadSpec, all: &Recorder, reports: &[WorkerReport], overdue: u64) -> OpenLoop {
    let sum = |field: fn(&OpenLoopCounts) -> u64| {
        let of_replay = |report: &WorkerReport| report.replay.and_then(|replay| replay.open_loop);
        reports
            .iter()
            .filter_map(|report| report.open_loop.or(of_replay(report)))
            .map(|c| field(&c))
            .sum::<u64>()
    };
    let (service_ns, service_histogram) = all.service_times();
    let [offered, dropped, backlog_end] = [sum(|c| c.offered), sum(|c| c.dropped), sum(|c| c.backlog_end)];
    let slots = u64::from(spec.outstanding) * u64::from(spec.workers);
    OpenLoop {
        offered,
        dropped,
        backlog_end,
        backlog_max: sum(|counts| counts.backlog_max),
        saturated: dropped > 0
            || backlog_end > slots.max(offered / 100)
            || stopped_keeping_up(overdue, offered),
        service_ns,
        service_histogram,
    }
}

fn saturation_note(spec: &LoadSpec, open_loop: &OpenLoop, overdue: u64) -> Option<String> {
    let OpenLoop { dropped, backlog_end, .. } = open_loop;
    if let Some(trace) = spec.trace.as_ref().filter(|_| open_loop.saturated) {
        return Some(format!(
            "the target is saturated: it could not keep up with the trace at --pace {}. {backlog_end} operations \
             were waiting for a free slot when the last one was due; the latencies tell how long the trace is \
             rather than what the target can do",
            trace.pace
        ));
    }
    open_loop.saturated.then(|| {
        format!(
            "the target is saturated: it could not keep up with --rate. At the end {backlog_end} operations were \
             waiting to start, {overdue} of those unfinished had waited longer than 99 % of the others took, and \
             {dropped} were dropped; so the true latencies are higher and depend on how long the load lasts"
        )
    })
}

/// A 99th or 99.9th percentile that rises by more than this share, once unfinished operations are
/// counted in, is said.
const TELLING_RISE: f64 = 0.1;

/// What the reader of the percentiles has to know of the operations that are in none of them.
fn tail_note(in_time: Option<&LatencySummary>, in_flight: &InFlightAtEnd) -> Option<String> {
    let counted_in = in_flight.counted_in_ns.as_ref()?;
    let rises = |of: fn(&LatencySummary) -> u64| {
        in_time.is_none_or(|in_time| of(counted_in) as f64 > of(in_time) as f64 * (1.0 + TELLING_RISE))
    };
    (rises(|latency| latency.p99) || rises(|latency| latency.p99_9)).then(|| {
        let of = |percentile: fn(&LatencySummary) -> u64| {
            let was = in_time.map_or_else(|| "-".to_owned(), |latency| format_latency_ns(percentile(latency) as f64));
            format!("{} instead of {was}", format_latency_ns(percentile(counted_in) as f64))
        };
        format!(
            "operations that were unfinished when measuring ended are the tail: counted in, p99 is {}, p99.9 {}",
            of(|latency| latency.p99),
            of(|latency| latency.p99_9)
        )
    })
}

fn verification(reports: &[WorkerReport]) -> Option<Verification> {
    let mut parts = reports.iter().filter_map(|report| report.verification.as_ref());
    let mut whole = parts.next()?.clone();
    parts.for_each(|part| whole.merge(part));
    Some(whole)
}
