//! The workers' threads, as seen by the thread that started them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use virtbench_workload::{ClockReading, LoadSpec};

use crate::backend::{Backend, Opened, Task};
use crate::buffers::Buffers;
use crate::clock::{WorkerClock, monotonic_ns};
use crate::error::{EngineError, resource};
use crate::flow::{Flow, FlowShare};
use crate::live::{LiveCounters, Stillness};
use crate::open_loop::{Moments, OpenLoop};
use crate::replay::ReplayLoop;
use crate::slots::{Belongings, InFlight, Parking, stall_note};
use crate::system::{pin_to, sharpen_sleep};
use crate::target::Target;
use crate::verify::{Ledger, Verifier};
use crate::worker::{Worker, WorkerReport};

/// How often the workers are looked after.
const LOOK: Duration = Duration::from_millis(50);

/// A worker's thread, as seen from outside.
pub(crate) struct Member {
    thread: Option<JoinHandle<()>>,
    finished: mpsc::Receiver<io::Result<WorkerReport>>,
    parking: Arc<Parking>,
}

impl Member {
    pub(crate) fn start(
        job: WorkerJob,
        ready: mpsc::Sender<Result<Option<String>, EngineError>>,
        started: mpsc::Receiver<Moments>,
    ) -> Result<Self, EngineError> {
        let (report, finished) = mpsc::channel();
        let parking = Arc::clone(&job.parking);
        let thread = thread::Builder::new()
            .name(format!("worker-{}", job.index))
            .spawn(move || {
                // Nobody listens any more once another worker has failed.
                let _ = report.send(job.run(&ready, &started));
            })
            .map_err(|source| resource("a worker thread", source))?;
        Ok(Self { thread: Some(thread), finished, parking })
    }

    /// Waits so long for what the worker brings back. Once an operation blocks it for longer than
    /// `timeout_ns`, takes what it recorded and leaves it behind.
    fn look(
        &mut self,
        wait: Duration,
        timeout_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Option<WorkerReport>, EngineError> {
        match self.finished.recv_timeout(wait) {
            Ok(report) => return report.map(Some).map_err(|source| resource("a worker", source)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let defect = "it panicked; this is a defect of virtbench";
                return Err(resource("a worker", io::Error::other(defect)));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        let now_ns = monotonic_ns();
        let left_behind = self.parking.give_up(now_ns.saturating_sub(timeout_ns));
        Ok(left_behind.map(|belongings| {
            stop.store(true, Ordering::Relaxed);
            self.thread = None;
            left_behind_report(belongings, now_ns, timeout_ns)
        }))
    }
}

/// What is known of a worker that an operation blocks for longer than `timeout_ns`.
fn left_behind_report(belongings: Belongings, now_ns: u64, timeout_ns: u64) -> WorkerReport {
    let Belongings { mut recorder, open_loop, replay, operation } = belongings;
    let (stopped_ns, early) = recorder.end_at(now_ns);
    if let Some(InFlight { op, start_ns, .. }) = operation {
        recorder.stalled(now_ns, op.direction, now_ns.saturating_sub(start_ns));
    }
    let open_loop = open_loop.map(|open_loop| open_loop.finish(stopped_ns, |due| recorder.unstarted(due)));
    WorkerReport {
        clock_note: None,
        gave_up: Some(stall_note(recorder.stalls(), timeout_ns, early)),
        recorder,
        open_loop,
        replay,
        verification: None,
        has_done_all: false,
        stopped_ns,
        cpu_ns: [0, 0],
    }
}

/// Waits for all workers; one that is blocked for too long stops the others. Returns what they bring, and what is to be noted of the
/// meantime.
pub(crate) fn gather(
    members: &mut [Member],
    timeout_ns: u64,
    stop: &AtomicBool,
) -> Result<(Vec<WorkerReport>, Option<String>), EngineError> {
    let mut stillness = Stillness::since(monotonic_ns());
    let mut reports: Vec<Option<WorkerReport>> = members.iter().map(|_| None).collect();
    while let Some(first) = reports.iter().position(Option::is_none) {
        for (index, member) in members.iter_mut().enumerate().filter(|(index, _)| *index >= first) {
            if reports[index].is_some() {
                continue;
            }
            let wait = if index == first { LOOK } else { Duration::ZERO };
            reports[index] = member.look(wait, timeout_ns, stop)?;
            stillness.look(monotonic_ns());
            // It has nothing left to do but to end.
            if let Some(thread) = member.thread.take_if(|_| reports[index].is_some()) {
                let _ = thread.join();
            }
        }
    }
    Ok((reports.into_iter().flatten().collect(), stillness.note()))
}

/// One worker's part of a load. Owns all it needs, because a thread that blocks for ever outlives the
/// load.
pub(crate) struct WorkerJob {
    pub spec: Arc<LoadSpec>,
    pub target: Target,
    pub stop: Arc<AtomicBool>,
    pub completed: Arc<AtomicU64>,
    pub live: Option<Arc<LiveCounters>>,
    pub parking: Arc<Parking>,
    pub ledger: Option<Arc<Ledger>>,
    pub flow: Option<Flow>,
    pub index: u32,
    pub interval_ns: u64,
    pub buffer_seed: u64,
}

impl WorkerJob {
    /// Builds the worker and its backend on this thread (a ring belongs to the thread that made it),
    /// says that it is ready, waits for the moments and runs.
    pub(crate) fn run(
        self,
        ready: &mpsc::Sender<Result<Option<String>, EngineError>>,
        started: &mpsc::Receiver<Moments>,
    ) -> io::Result<WorkerReport> {
        let clock = WorkerClock::of_this_machine();
        let (buffers, backend) = match self.prepare() {
            Ok((buffers, backend, note)) => {
                let _ = ready.send(Ok(note));
                (buffers, backend)
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                return Err(io::Error::other("it could not be prepared"));
            }
        };
        let Ok(moments) = started.recv() else { return Err(io::Error::other("another worker failed")) };
        let Self { spec, index, .. } = &self;
        let arrivals = spec.arrivals(*index);
        backend.perform(RunLoad(Worker {
            stream: spec.stream(*index),
            replay: spec
                .trace
                .as_ref()
                .map(|trace| Box::new(ReplayLoop::new(trace, *index, spec.workers, moments))),
            buffers,
            outstanding: spec.outstanding,
            moments,
            interval_ns: self.interval_ns,
            timeout_ns: spec.timeout_ns,
            open_loop: arrivals.map(|times| Box::new(OpenLoop::new(times, moments))),
            verifier: self.ledger.clone().map(Verifier::new),
            flow: self.flow.clone().map(FlowShare::join),
            stop: &self.stop,
            completed: &self.completed,
            live: self.live.as_deref(),
            parking: &self.parking,
            clock,
            reads_each: spec.clock == ClockReading::Each,
        }))
    }

    #[allow(clippy::cast_possible_truncation)]
    fn prepare(&self) -> Result<(Buffers, Opened, Option<String>), EngineError> {
        let spec = &self.spec;
        pin(spec, self.index)?;
        if spec.rate.is_some() || spec.trace.is_some() {
            sharpen_sleep();
        }
        let block_bytes = spec.access.largest_block_bytes() as usize;
        let mut buffers = Buffers::new(spec.outstanding as usize, block_bytes, self.buffer_seed)
            .map(|buffers| buffers.with_content(spec.content).with_pattern(&spec.pattern, spec.content))
            .map_err(|source| EngineError::Resource { what: "memory for buffers".into(), source })?;
        let (backend, note) = Opened::open(&self.target, spec, &mut buffers, spec.outstanding)?;
        let backend = backend.with_faults(self.target.faults(), spec.outstanding, !self.buffer_seed);
        Ok((buffers, backend, note))
    }
}

/// Keeps the calling thread on the worker's processor, where the load names any.
fn pin(spec: &LoadSpec, index: u32) -> Result<(), EngineError> {
    if spec.processors.is_empty() {
        return Ok(());
    }
    let processor = spec.processors[index as usize % spec.processors.len()];
    let refused = |source: io::Error| EngineError::Resource {
        what: format!(
            "--pin {processor}: no such processor, or it is not among those this process may use \
             (see `taskset -p $$`)"
        ),
        source,
    };
    pin_to(processor).map_err(refused)
}

/// The worker's loop, as something to do with a backend.
struct RunLoad<'a>(Worker<'a>);

impl Task for RunLoad<'_> {
    type Output = io::Result<WorkerReport>;

    fn perform<B: Backend>(self, backend: &mut B) -> Self::Output {
        self.0.run(backend)
    }
}
