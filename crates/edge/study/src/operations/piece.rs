//! A piece of a run: operations for some time, from an open or a closed loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{CpuSample, LabError};
use virtbench_operations::{Arrivals, Choice};
use virtbench_record::{OperationLine, OperationsMeasured, Phase};

use super::fleet::Fleet;
use super::log::Log;
use super::tally::{Tallied, Tally};
use crate::course::nanoseconds;
use crate::study_error::StudyError;

/// How often a stop is looked for while nothing is to start.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long a client of a closed loop waits where nothing is legal.
const IDLE: Duration = Duration::from_millis(5);

/// What is to be applied.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceLoad {
    /// Operations a minute; a closed loop where there is none.
    pub(super) per_minute: Option<f64>,
    /// Operations under way at once, at most.
    pub(super) clients: u32,
    pub(super) length: Duration,
    pub(super) seed: u64,
}

/// An operation that is to start.
struct Job {
    choice: Choice,
    intended: Duration,
}

/// What all threads of a piece share.
struct Piece<'a> {
    fleet: &'a Fleet<'a>,
    begun: Instant,
    sink: Mutex<(Tally, Option<Log>)>,
    stop: &'a AtomicBool,
}

impl Piece<'_> {
    fn perform(&self, job: &Job) {
        let waiting = self.begun.elapsed().saturating_sub(job.intended);
        let performed = self.fleet.perform(&job.choice);
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
        if let Err(failure) = &performed.result {
            tracing::debug!(kind = job.choice.kind.name(), vm = job.choice.vm, %failure, "an operation failed");
        }
        let (tally, log) = &mut *self.sink.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn open(&self, load: &PieceLoad, per_minute: f64) -> (u64, u64) {
        let (sender, receiver) = mpsc::channel();
        let jobs = Mutex::new(receiver);
        let (mut intended, mut not_issued) = (0, 0);
        if per_minute <= 0.0 {
            self.sleep_until(load.length);
            return (0, 0);
        }
        thread::scope(|scope| {
            for _ in 0..load.clients {
                scope.spawn(|| self.serve(&jobs));
            }
            for at_ns in Arrivals::new(per_minute, load.seed) {
                let at = Duration::from_nanos(at_ns);
                if at >= load.length || !self.sleep_until(at) {
                    break;
                }
                intended += 1;
                match self.fleet.next() {
                    // Each holds a VM of its own, so only so many can wait.
                    Some(choice) => drop(sender.send(Job { choice, intended: at })),
                    None => not_issued += 1,
                }
            }
            self.sleep_until(load.length);
            drop(sender);
        });
        (intended, not_issued)
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
                    self.perform(&Job { choice, intended: self.begun.elapsed() });
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

/// Applies a load for its time and waits for the last operation.
///
/// # Errors
/// The log cannot be written, or `stop` was set.
pub(super) fn measure_piece(
    fleet: &Fleet<'_>,
    load: &PieceLoad,
    log: Option<Log>,
    stop: &AtomicBool,
) -> Result<OperationsMeasured, StudyError> {
    let before = CpuSample::take().map_err(LabError::from)?;
    let piece = Piece { fleet, begun: Instant::now(), sink: Mutex::new((Tally::default(), log)), stop };
    let (intended, not_issued) = match load.per_minute {
        Some(per_minute) => piece.open(load, per_minute),
        None => (piece.closed(load), 0),
    };
    let elapsed_ns = nanoseconds(piece.begun.elapsed());
    let host = before.until(&CpuSample::take().map_err(LabError::from)?);
    let (tally, log) = piece.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(log) = log {
        log.end()?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err(StudyError::Stopped);
    }
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
        vms_at_end: count(vms),
        running_at_end: count(running),
        host,
        tenants: Vec::new(),
        first_failures,
    })
}
