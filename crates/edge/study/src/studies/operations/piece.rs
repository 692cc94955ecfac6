//! A piece of a run: operations for some time, from an open or a closed loop, each a line of its log and counted in its tally.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{CpuSample, LabError};
use virtbench_operations::{Arrivals, Choice, Span, steady_window};
use virtbench_platforms::Performed;
use virtbench_record::{
    CloneKind, JobSummary, OperationKind, OperationLine, OperationNumbers, OperationsMeasured, Phase, Phases,
};
use virtbench_runs::FolderError;
use virtbench_units::{LatencyRecorder, LatencySummary};

use super::fleet::{Ended, Fleet, covered_ns};
use crate::runner::progress::nanoseconds;
use crate::study_error::StudyError;

/// How often a stop is looked for while nothing is to start.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How long a client of a closed loop waits where nothing is legal.
const IDLE: Duration = Duration::from_millis(5);

/// When operations start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Starts {
    /// When the last one of a client is seen.
    Closed,
    /// At random, so many a minute.
    Open { per_minute: f64 },
    /// At equal distances, so many after some that do not count. From where counting begins the mix is done in rounds.
    Paced { gap: Duration, uncounted: u32, counted: u32 },
}

/// What is to be applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PieceLoad {
    pub(crate) starts: Starts,
    /// Operations in flight at once, at most.
    pub(crate) clients: u32,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
}

impl PieceLoad {
    fn is_paced(&self) -> bool {
        matches!(self.starts, Starts::Paced { .. })
    }
}

/// An operation that is to start.
struct Job {
    choice: Choice,
    intended: Duration,
    counts: bool,
}

/// Where operations go that are over.
#[derive(Default)]
struct Sink {
    tally: Tally,
    log: Option<Log>,
    spans: Vec<Span>,
    /// When nobody answered, in nanoseconds from the beginning.
    away_ns: Vec<(u64, u64)>,
}

/// What all threads of a piece share.
struct Piece<'a> {
    fleet: &'a Fleet<'a>,
    begun: Instant,
    sink: Mutex<Sink>,
    stop: &'a AtomicBool,
}

impl Piece<'_> {
    fn perform(&self, job: &Job) {
        let waiting = self.begun.elapsed().saturating_sub(job.intended);
        let Ended { performed, away } = self.fleet.perform(&job.choice);
        let mut phases = performed.phases;
        phases.add(Phase::Waiting, nanoseconds(waiting));
        let line = OperationLine {
            kind: job.choice.kind,
            vm: job.choice.vm,
            clone: job.choice.clone,
            intended_ns: nanoseconds(job.intended),
            phases_ns: phases,
            retries: performed.retries,
            failed: performed.result.as_ref().err().map(|failure| failure.kind),
            job: performed.job.as_ref().and_then(|told| told.as_ref().ok()).cloned().unwrap_or_default(),
        };
        if !job.counts {
            return;
        }
        if let Err(failure) = &performed.result {
            tracing::debug!(kind = job.choice.kind.name(), vm = job.choice.vm, %failure, "an operation failed");
        }
        let Sink { tally, log, spans, away_ns } =
            &mut *self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = |at: Instant| nanoseconds(at.saturating_duration_since(self.begun));
        away_ns.extend(away.map(|(from, until)| (since_ns(from), until.map_or(u64::MAX, since_ns))));
        let intended_ns = nanoseconds(job.intended);
        spans.push(Span {
            kind: job.choice.kind,
            intended_ns,
            ended_ns: intended_ns.saturating_add(phases.total_ns()),
            is_done: performed.result.is_ok(),
        });
        tally.add(&job.choice, &phases, &performed);
        if let Some(log) = log {
            log.add(&line);
        }
    }

    fn serve(&self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            self.perform(&job);
        }
    }

    /// Starts operations when they are meant to; how many, and how many of them could not.
    fn open(&self, load: &PieceLoad, starts: impl Iterator<Item = (Duration, bool)>) -> (u64, u64) {
        let (sender, receiver) = mpsc::channel();
        let jobs = Mutex::new(receiver);
        let (mut intended, mut not_issued) = (0, 0);
        let mut counts_now = None;
        thread::scope(|scope| {
            for _ in 0..load.clients {
                scope.spawn(|| self.serve(&jobs));
            }
            for (at, counts) in starts {
                if at >= load.length || !self.sleep_until(at) {
                    break;
                }
                if counts_now != Some(counts) && load.is_paced() {
                    self.fleet.begin_rounds(load.seed);
                }
                counts_now = Some(counts);
                intended += u64::from(counts);
                match self.next(load) {
                    // Each holds a VM of its own, so only so many can wait.
                    Some(choice) => drop(sender.send(Job { choice, intended: at, counts })),
                    None => not_issued += u64::from(counts),
                }
            }
            self.sleep_until(load.length);
            drop(sender);
        });
        (intended, not_issued)
    }

    /// What is to be done next. At a fixed pace every operation has its turn: what is not legal yet is waited for.
    fn next(&self, load: &PieceLoad) -> Option<Choice> {
        let until = load.length + self.fleet.limit();
        loop {
            let choice = self.fleet.next();
            let over = self.begun.elapsed() >= until || self.stop.load(Ordering::Relaxed);
            if choice.is_some() || !load.is_paced() || over {
                return choice;
            }
            thread::sleep(IDLE);
        }
    }

    /// Whether the moment came before a stop.
    fn sleep_until(&self, at: Duration) -> bool {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = at.saturating_sub(self.begun.elapsed());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK_INTERVAL));
        }
    }

    /// Clients that start their next operation when the last one is seen; how many operations.
    fn closed(&self, load: &PieceLoad) -> u64 {
        let client = || {
            let mut started = 0;
            while self.begun.elapsed() < load.length && !self.stop.load(Ordering::Relaxed) {
                if let Some(choice) = self.fleet.next() {
                    self.perform(&Job { choice, intended: self.begun.elapsed(), counts: true });
                    started += 1;
                } else {
                    thread::sleep(IDLE);
                }
            }
            started
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..load.clients).map(|_| scope.spawn(client)).collect();
            clients.into_iter().filter_map(|client| client.join().ok()).sum()
        })
    }
}

/// Applies a load for its time and waits, which costs no throughput, for the last operation.
///
/// # Errors
/// The log cannot be written, or `stop` was set.
pub(crate) fn measure_piece(
    fleet: &Fleet<'_>,
    load: &PieceLoad,
    log: Option<Log>,
    stop: &AtomicBool,
) -> Result<OperationsMeasured, StudyError> {
    let stack = fleet.management().sample();
    let before = CpuSample::take().map_err(LabError::from)?;
    let piece =
        Piece { fleet, begun: Instant::now(), sink: Mutex::new(Sink { log, ..Sink::default() }), stop };
    let (intended, not_issued) = match load.starts {
        Starts::Closed => (piece.closed(load), 0),
        Starts::Open { per_minute } => {
            let arrivals = Arrivals::new(per_minute, load.seed).take_while(|_| per_minute > 0.0);
            piece.open(load, arrivals.map(|at_ns| (Duration::from_nanos(at_ns), true)))
        }
        Starts::Paced { gap, uncounted, counted } => {
            let begin = load.length.saturating_sub(gap * counted);
            let places = (0..uncounted + counted).map(|place| (place, place >= uncounted));
            let at = |place: u32| begin.saturating_sub(gap * uncounted) + gap * place;
            piece.open(load, places.map(|(place, counts)| (at(place), counts)))
        }
    };
    let uncounted = match load.starts {
        Starts::Paced { gap, counted, .. } => load.length.saturating_sub(gap * counted),
        Starts::Closed | Starts::Open { .. } => Duration::ZERO,
    };
    let elapsed_ns = nanoseconds(piece.begun.elapsed().saturating_sub(uncounted));
    let host = before.until(&CpuSample::take().map_err(LabError::from)?);
    let management = fleet.management().until_now(&stack);
    let Sink { tally, log, spans, away_ns } = piece.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(log) = log {
        log.end()?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err(StudyError::Stopped);
    }
    let is_closed = matches!(load.starts, Starts::Closed);
    let steady = (!load.is_paced()).then(|| steady_window(&spans, nanoseconds(load.length), is_closed));
    let Tallied { operations, clones, latency_ns, first_failures } = tally.numbers();
    let (vms, running) = fleet.counts();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(OperationsMeasured {
        elapsed_ns,
        intended,
        not_issued,
        operations,
        clones,
        latency_ns,
        steady,
        outage_ns: covered_ns(away_ns, nanoseconds(load.length)),
        vms_at_end: count(vms),
        running_at_end: count(running),
        host,
        management: Some(management),
        tenants: Vec::new(),
        first_failures,
    })
}

/// The folder of the logs, in the run folder.
const FOLDER: &str = "operations";

/// The log of a piece. One that is begun again replaces what was there.
pub(crate) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    /// The first line that could not be written.
    failed: Option<io::Error>,
}

impl Log {
    /// Begins the log of a piece.
    pub(super) fn begin(run: &Path, vms: u32, piece: u32) -> Result<Self, FolderError> {
        let path = run.join(FOLDER).join(format!("{vms}-vms-{piece:04}.jsonl"));
        let begun = fs::create_dir_all(run.join(FOLDER)).and_then(|()| File::create(&path));
        match begun {
            Ok(file) => Ok(Self { path, file: BufWriter::new(file), failed: None }),
            Err(source) => Err(FolderError::Io { action: "write", path, source }),
        }
    }

    /// Adds an operation.
    pub(super) fn add(&mut self, line: &OperationLine) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.file, line).map_err(io::Error::from);
        self.failed = written.and_then(|()| self.file.write_all(b"\n")).err();
    }

    /// Ends it, on the disk.
    pub(super) fn end(mut self) -> Result<(), FolderError> {
        let ended = match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush().and_then(|()| self.file.get_ref().sync_data()),
        };
        ended.map_err(|source| FolderError::Io { action: "write", path: self.path, source })
    }
}

/// Failures whose words are kept.
const MOST_WORDS: usize = 5;

#[derive(Default)]
struct OfKind {
    numbers: OperationNumbers,
    latency: LatencyRecorder,
    phases: BTreeMap<Phase, LatencyRecorder>,
}

impl OfKind {
    fn add(&mut self, phases: &Phases, performed: &Performed) {
        self.numbers.retries += u64::from(performed.retries);
        if let Err(failure) = &performed.result {
            *self.numbers.failed.entry(failure.kind).or_default() += 1;
            return;
        }
        self.numbers.done += 1;
        self.latency.record(phases.total_ns());
        for phase in Phase::ALL {
            if let Some(length_ns) = phases.get(phase) {
                self.phases.entry(phase).or_default().record(length_ns);
            }
        }
        match &performed.job {
            None => {}
            Some(Err(why)) => drop(self.numbers.job_unavailable.get_or_insert_with(|| why.clone())),
            Some(Ok(figures)) => {
                for (figure, value) in figures {
                    add_to(self.numbers.job.entry(*figure).or_default(), *value);
                }
            }
        }
    }

    fn finished(mut self) -> OperationNumbers {
        self.numbers.latency_ns = self.latency.summary();
        let phases = self.phases.iter();
        self.numbers.phases_ns =
            phases.filter_map(|(phase, lengths)| Some((*phase, lengths.summary()?))).collect();
        if self.numbers.done > 0 {
            self.numbers.histogram = self.latency.encode_histogram().ok();
        }
        self.numbers
    }
}

fn add_to(summary: &mut JobSummary, value: u64) {
    summary.jobs += 1;
    summary.mean += (value as f64 - summary.mean) / summary.jobs as f64;
    summary.most = summary.most.max(value);
}

/// The result of all operations of a piece.
pub(super) struct Tallied {
    /// By kind.
    pub(super) operations: BTreeMap<OperationKind, OperationNumbers>,
    /// Of clones, by the way in which disks are made.
    pub(super) clones: BTreeMap<CloneKind, OperationNumbers>,
    /// Of all that were done.
    pub(super) latency_ns: Option<LatencySummary>,
    /// Words of the first failures.
    pub(super) first_failures: Vec<String>,
}

/// Counts and latencies by kind.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<OperationKind, OfKind>,
    clones: BTreeMap<CloneKind, OfKind>,
    all: LatencyRecorder,
    words: Vec<String>,
}

impl Tally {
    /// Adds an operation; `phases` are those with the time it waited.
    pub(super) fn add(&mut self, choice: &Choice, phases: &Phases, performed: &Performed) {
        self.kinds.entry(choice.kind).or_default().add(phases, performed);
        if let Some(way) = choice.clone {
            self.clones.entry(way).or_default().add(phases, performed);
        }
        match &performed.result {
            Ok(()) => self.all.record(phases.total_ns()),
            Err(failure) if self.words.len() < MOST_WORDS => {
                self.words.push(format!("{}: {failure}", choice.kind.name()));
            }
            Err(_) => {}
        }
    }

    /// What it comes to; ways to clone only where there were several.
    pub(super) fn numbers(self) -> Tallied {
        let clones = if self.clones.len() > 1 { self.clones } else { BTreeMap::new() };
        Tallied {
            operations: self.kinds.into_iter().map(|(kind, one)| (kind, one.finished())).collect(),
            clones: clones.into_iter().map(|(way, one)| (way, one.finished())).collect(),
            latency_ns: self.all.summary(),
            first_failures: self.words,
        }
    }
}
