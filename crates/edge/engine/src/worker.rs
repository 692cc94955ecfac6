//! One worker: a thread that keeps its outstanding I/Os under way.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use virtbench_workload::{Direction, Step, Stream};

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{monotonic_ns, sleep_until};
use crate::cpu::CpuMeter;
use crate::recorder::Recorder;

/// Operations that may fail in a row, with none succeeding, before a worker gives the target up.
const MAX_FAILURES_IN_A_ROW: u32 = 1_000;
/// How long operations under way may take to complete after the end.
const DRAIN_LIMIT_NS: u64 = 30_000_000_000;
/// The longest a worker with nothing under way sleeps before it looks at its stop flag.
const NAP_NS: u64 = 50_000_000;

/// The moments of a load on the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// Ramp-up begins.
    pub start_ns: u64,
    /// Measuring begins.
    pub begin_ns: u64,
    /// Measuring ends.
    pub end_ns: u64,
}

/// What a worker brings back.
pub(crate) struct WorkerReport {
    /// Everything it saw.
    pub recorder: Recorder,
    /// When it stopped measuring.
    pub stopped_ns: u64,
    /// CPU time it used while measuring, in nanoseconds (user, system).
    pub cpu_ns: [u64; 2],
    /// Why it ended before its time, if it did so by itself.
    pub gave_up: Option<String>,
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    start_ns: u64,
    direction: Direction,
    len: u32,
}

/// Everything a worker needs besides its backend.
pub(crate) struct Worker<'a> {
    pub stream: Stream,
    pub buffers: Buffers,
    pub outstanding: u32,
    pub moments: Moments,
    pub interval_ns: u64,
    pub stop: &'a AtomicBool,
    pub completed: &'a AtomicU64,
}

impl Worker<'_> {
    /// Runs the load to its end on this thread.
    ///
    /// # Errors
    /// The kernel refused to take or return operations at all; failed operations are recorded.
    pub(crate) fn run(mut self, backend: &mut impl Backend) -> io::Result<WorkerReport> {
        let idle = InFlight { start_ns: 0, direction: Direction::Read, len: 0 };
        let mut slots = vec![idle; self.outstanding as usize];
        let mut free: Vec<u32> = (0..self.outstanding).rev().collect();
        let mut completions: Vec<Completion> = Vec::with_capacity(slots.len() + 1);
        let mut recorder = Recorder::new(self.moments.begin_ns, self.moments.end_ns, self.interval_ns);
        let mut delay_until_ns = 0;
        let mut failures_in_a_row = 0;
        let mut last_errno = 0;
        let mut gave_up = None;
        let mut total = 0;
        let mut cpu = CpuMeter::new(self.moments.begin_ns);

        sleep_until(self.moments.start_ns);
        let mut now_ns = monotonic_ns();
        let stopped_ns = loop {
            if now_ns >= self.moments.end_ns {
                break self.moments.end_ns;
            }
            if self.stop.load(Ordering::Relaxed) {
                break now_ns;
            }
            if failures_in_a_row >= MAX_FAILURES_IN_A_ROW {
                gave_up = Some(format!(
                    "gave up after {failures_in_a_row} failed operations in a row, the last with: {}",
                    crate::recorder::error_name(last_errno)
                ));
                break now_ns;
            }
            cpu.look(now_ns);
            if now_ns >= delay_until_ns {
                delay_until_ns = self.issue(backend, &mut slots, &mut free, now_ns);
            }
            let delayed = delay_until_ns > now_ns;
            if free.len() == slots.len() {
                sleep_until(delay_until_ns.min(now_ns + NAP_NS).min(self.moments.end_ns));
                now_ns = monotonic_ns();
                continue;
            }
            completions.clear();
            backend.drive(delayed.then_some(delay_until_ns.min(now_ns + NAP_NS)), &mut completions)?;
            now_ns = monotonic_ns();
            for Completion { slot, result } in completions.drain(..) {
                let InFlight { start_ns, direction, len } = slots[slot as usize];
                if u32::try_from(result) == Ok(len) {
                    recorder.success(now_ns, direction, len, now_ns - start_ns);
                    failures_in_a_row = 0;
                    total += 1;
                } else {
                    last_errno = (-result).max(0);
                    recorder.failure(now_ns, last_errno);
                    failures_in_a_row += 1;
                }
                free.push(slot);
            }
            self.completed.store(total, Ordering::Relaxed);
        };
        let cpu_ns = cpu.used();
        if !drain(backend, slots.len() - free.len())? {
            gave_up = Some("operations were still under way 30 s after the end".into());
            // The kernel may yet write into them: memory lost is better than memory corrupted.
            std::mem::forget(self.buffers);
        }
        Ok(WorkerReport { recorder, stopped_ns, cpu_ns, gave_up })
    }

    /// Fills free slots until there is none, or a delay is due; returns when that delay ends.
    #[inline]
    fn issue(
        &mut self,
        backend: &mut impl Backend,
        slots: &mut [InFlight],
        free: &mut Vec<u32>,
        mut now_ns: u64,
    ) -> u64 {
        while let Some(&slot) = free.last() {
            let op = match self.stream.next_step() {
                Step::Issue(op) => op,
                Step::Wait(delay_ns) => return now_ns + delay_ns,
            };
            free.pop();
            if op.direction == Direction::Write {
                self.buffers.renew(slot as usize, op.len as usize);
                now_ns = monotonic_ns();
            }
            slots[slot as usize] = InFlight { start_ns: now_ns, direction: op.direction, len: op.len };
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
        }
        0
    }
}

/// Waits, within the limit, until nothing is under way. Returns whether that was reached.
fn drain(backend: &mut impl Backend, mut under_way: usize) -> io::Result<bool> {
    let limit_ns = monotonic_ns() + DRAIN_LIMIT_NS;
    let mut completions = Vec::new();
    while under_way > 0 {
        if monotonic_ns() > limit_ns {
            return Ok(false);
        }
        backend.drive(None, &mut completions)?;
        under_way -= completions.drain(..).count();
    }
    Ok(true)
}
