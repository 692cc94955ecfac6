//! One worker's thread: what it needs, made on the thread itself.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, mpsc};

use virtbench_workload::{ClockReading, LoadSpec};

use crate::backend::{Backend, Opened, Task};
use crate::buffers::Buffers;
use crate::clock::WorkerClock;
use crate::error::EngineError;
use crate::flow::{Flow, FlowShare};
use crate::live::LiveCounters;
use crate::moments::Moments;
use crate::open_loop::OpenLoop;
use crate::parking::Parking;
use crate::replay::ReplayLoop;
use crate::system::{pin_to, sharpen_sleep};
use crate::target::Target;
use crate::verify::{Ledger, Verifier};
use crate::worker::{Worker, WorkerReport};

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
