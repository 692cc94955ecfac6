//! A whole load: starts the workers together, waits for them, merges what they recorded.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use thiserror::Error;
use virtbench_record::LoadOutcome;
use virtbench_units::SeedSequence;
use virtbench_workload::{LoadError, LoadSpec, Stream};

use crate::backend::{self, AnyBackend, Refused};
use crate::buffers::Buffers;
use crate::clock::{monotonic_ns, sleep_until};
use crate::recorder::{MAX_INTERVALS, Recorder};
use crate::target::Target;
use crate::worker::{Moments, Worker, WorkerReport};

/// Why a load could not be applied. Operations that fail are not among them: they are counted.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The load makes no sense.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The load does not fit the target.
    #[error("{0}")]
    Misfit(String),
    /// The kernel refused a resource.
    #[error("{what}: {source}")]
    Resource {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What the caller holds of a running load.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    completed: Vec<AtomicU64>,
}

impl Control {
    /// A control for loads of up to this many workers.
    #[must_use]
    pub fn new(workers: u32) -> Self {
        Self { stop: AtomicBool::new(false), completed: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Ends the load early; what was measured is kept.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Operations completed so far, ramp-up included.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// Applies `spec` to `target`. Ramp-up begins when the monotonic clock shows `start_at_ns`, or once
/// all workers are ready if that is later; `on_measuring` is called with the clock when it is over.
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
    let workers = spec.workers as usize;
    let interval_ns = spec.interval_ns.max(spec.time_ns.div_ceil(MAX_INTERVALS as u64));
    let mut seeds = SeedSequence::new(!spec.seed);
    let buffer_seeds: Vec<u64> = (0..workers).map(|_| seeds.next_seed()).collect();

    thread::scope(|scope| {
        let (ready, all_ready) = mpsc::channel::<Result<Option<String>, EngineError>>();
        let mut starts = Vec::with_capacity(workers);
        let mut handles = Vec::with_capacity(workers);
        for (index, buffer_seed) in (0..spec.workers).zip(buffer_seeds) {
            let ready = ready.clone();
            let (start, started) = mpsc::channel::<Moments>();
            starts.push(start);
            let handle =
                thread::Builder::new().name(format!("worker-{index}")).spawn_scoped(scope, move || {
                    let job = WorkerJob { spec, target, control, index, interval_ns, buffer_seed };
                    job.run(&ready, &started)
                });
            handles.push(handle.map_err(|source| resource("a worker thread", source))?);
        }
        drop(ready);
        let mut notes = target.notes().to_vec();
        for report in all_ready.iter().take(workers) {
            if let Some(note) = report?.filter(|note| !notes.contains(note)) {
                notes.push(note);
            }
        }
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
        on_measuring(monotonic_ns());
        let mut reports = Vec::with_capacity(workers);
        for handle in handles {
            let report = handle.join().map_err(|_| {
                resource("a worker", io::Error::other("it panicked; this is a defect of virtbench"))
            })?;
            reports.push(report.map_err(|source| resource("io_uring", source))?);
        }
        Ok(merge(spec, target, moments, interval_ns, &reports, notes))
    })
}

fn resource(what: &str, source: io::Error) -> EngineError {
    EngineError::Resource { what: what.to_owned(), source }
}

/// One worker's part of the load.
struct WorkerJob<'a> {
    spec: &'a LoadSpec,
    target: &'a Target,
    control: &'a Control,
    index: u32,
    interval_ns: u64,
    buffer_seed: u64,
}

impl WorkerJob<'_> {
    /// Builds the worker and its backend on this thread (a ring belongs to the thread that made
    /// it), reports, waits for the moments and runs.
    #[allow(clippy::cast_possible_truncation)]
    fn run(
        self,
        ready: &mpsc::Sender<Result<Option<String>, EngineError>>,
        started: &mpsc::Receiver<Moments>,
    ) -> io::Result<WorkerReport> {
        let Self { spec, target, control, index, .. } = self;
        let fail = |what: &str, error: io::Error| {
            let kind = error.kind();
            let _ = ready.send(Err(resource(what, error)));
            io::Error::from(kind)
        };
        let slots = spec.outstanding;
        let block_bytes = spec.access.largest_block_bytes() as usize;
        let mut buffers = Buffers::new(slots as usize, block_bytes, self.buffer_seed)
            .map_err(|error| fail("memory for buffers", error))?;
        let stream = Stream::new(&spec.access, spec.region_bytes, spec.seed, index, spec.workers);
        let (backend, note) = backend::build(target, spec, index, &mut buffers)
            .map_err(|Refused(what, error)| fail(what, error))?;
        let _ = ready.send(Ok(note));
        let Ok(moments) = started.recv() else { return Err(io::Error::other("another worker failed")) };
        let uncounted = AtomicU64::new(0);
        let worker = Worker {
            stream,
            buffers,
            outstanding: slots,
            moments,
            interval_ns: self.interval_ns,
            stop: &control.stop,
            completed: control.completed.get(index as usize).unwrap_or(&uncounted),
        };
        match backend {
            AnyBackend::Null(mut backend) => worker.run(&mut backend),
            AnyBackend::Psync(mut backend) => worker.run(&mut backend),
            AnyBackend::Uring(mut backend) => worker.run(&mut *backend),
            #[cfg(feature = "network-targets")]
            AnyBackend::Nbd(mut backend) => worker.run(&mut backend),
            #[cfg(feature = "network-targets")]
            AnyBackend::VhostUser(mut backend) => worker.run(&mut backend),
            AnyBackend::Faulty(mut backend) => worker.run(&mut backend),
        }
    }
}

fn merge(
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
    for reason in reports.iter().filter_map(|report| report.gave_up.as_ref()) {
        if !notes.contains(reason) {
            notes.push(reason.clone());
        }
    }
    let mut all = Recorder::new(moments.begin_ns, moments.end_ns, interval_ns);
    reports.iter().for_each(|report| all.merge(&report.recorder));
    let [total, read, write] = all.stats(elapsed_ns);
    let error_kinds = all.error_kinds();
    LoadOutcome {
        total,
        read,
        write,
        errors: error_kinds.values().sum(),
        error_kinds,
        elapsed_ns,
        interrupted: stopped_ns < moments.end_ns,
        own_cpu_ns,
        intervals: all.series(elapsed_ns),
        target: target.facts().clone(),
        spec: spec.clone(),
        seed: spec.seed,
        notes,
    }
}
