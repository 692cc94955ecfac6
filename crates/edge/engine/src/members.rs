//! The workers' threads, as seen by the thread that started them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::ending::stall_note;
use crate::error::{EngineError, resource};
use crate::job::WorkerJob;
use crate::moments::Moments;
use crate::parking::{Belongings, Parking};
use crate::slots::InFlight;
use crate::stillness::Stillness;
use crate::worker::WorkerReport;

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
