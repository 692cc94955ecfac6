//! One worker: a thread that keeps its outstanding I/Os under way.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use virtbench_record::Verification;
use virtbench_units::format_duration_ns;
use virtbench_workload::{Direction, Op, Step, Stream};

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{monotonic_ns, sleep_until};
use crate::cpu::CpuMeter;
use crate::live::LiveCounters;
use crate::open_loop::{OpenLoop, OpenLoopCounts};
use crate::parking::Parking;
use crate::recorder::{Recorder, error_name};
use crate::replay::{Next, ReplayCounts, ReplayLoop};
use crate::slots::{InFlight, Slots};
use crate::verify::Verifier;

/// Operations that may fail in a row, with none succeeding, before a worker gives the target up.
const MAX_FAILURES_IN_A_ROW: u32 = 1_000;
/// The longest a worker with nothing under way sleeps before it looks at its stop flag.
const NAP_NS: u64 = 50_000_000;
/// Once an operation has taken too long, how long the others may take to complete.
const STALLED_DRAIN_NS: u64 = 1_000_000_000;
/// How long before an intended start a worker stops sleeping: a wake-up in a virtual machine takes
/// tens of microseconds, which would otherwise count as the target's.
const OPEN_LOOP_LEAD_NS: u64 = 30_000;
/// Blocks drawn in vain, because each has an operation under way already, before a worker that
/// verifies waits for a completion.
const MAX_CLAIMS_REFUSED: u32 = 64;

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
    pub recorder: Box<Recorder>,
    /// What its open loop came to, where it had one.
    pub open_loop: Option<OpenLoopCounts>,
    /// What it replayed of a trace, where it had one.
    pub replay: Option<ReplayCounts>,
    /// What it found damaged, where it verified.
    pub verification: Option<Verification>,
    /// When it stopped measuring.
    pub stopped_ns: u64,
    /// CPU time it used while measuring, in nanoseconds (user, system).
    pub cpu_ns: [u64; 2],
    /// Why it ended before its time, if it did so by itself.
    pub gave_up: Option<String>,
}

impl WorkerReport {
    /// Whether it ended neither when its time was up nor with its part of a trace.
    pub(crate) fn was_cut_short(&self, moments: Moments) -> bool {
        let whole = self.replay.is_some_and(|replay| replay.whole);
        self.gave_up.is_some() || (self.stopped_ns < moments.end_ns && !whole)
    }
}

/// Everything a worker needs besides its backend.
pub(crate) struct Worker<'a> {
    pub stream: Stream,
    /// What is done instead of the stream's operations, where a trace is replayed.
    pub replay: Option<Box<ReplayLoop<'a>>>,
    pub buffers: Buffers,
    pub outstanding: u32,
    pub moments: Moments,
    pub interval_ns: u64,
    /// An operation that takes longer ends the load.
    pub timeout_ns: u64,
    pub open_loop: Option<Box<OpenLoop>>,
    pub verifier: Option<Verifier>,
    pub stop: &'a AtomicBool,
    pub completed: &'a AtomicU64,
    /// What somebody who watches is told of each operation.
    pub live: Option<&'a LiveCounters>,
    pub parking: &'a Parking,
}

impl Worker<'_> {
    /// Runs the load to its end on this thread.
    ///
    /// # Errors
    /// The kernel refused to take or return operations at all; failed operations are recorded.
    pub(crate) fn run<B: Backend>(self, backend: &mut B) -> io::Result<WorkerReport> {
        // Two loops from one source: asking each operation whether it has an intended start, is
        // verified or watched would cost a plain load, of 15 ns an operation, a good part of that.
        let special = self.open_loop.is_some() || self.verifier.is_some() || self.replay.is_some();
        if !special && self.live.is_none() {
            self.run_as::<B, true>(backend)
        } else {
            self.run_as::<B, false>(backend)
        }
    }

    fn run_as<B: Backend, const PLAIN: bool>(mut self, backend: &mut B) -> io::Result<WorkerReport> {
        let mut slots = Slots::new(self.outstanding);
        let mut completions: Vec<Completion> = Vec::with_capacity(self.outstanding as usize + 1);
        let Moments { start_ns, begin_ns, end_ns } = self.moments;
        let mut recorder = Box::new(Recorder::new(begin_ns, end_ns, self.interval_ns));
        let paced = self.open_loop.is_some() || self.replay.as_ref().is_some_and(|replay| replay.is_paced());
        let lead_ns = if paced { OPEN_LOOP_LEAD_NS } else { 0 };
        let look_every_ns = (self.timeout_ns / 4).clamp(1, NAP_NS);
        let mut look_at_ns = start_ns + look_every_ns;
        let mut issue_at_ns = 0;
        let mut failures_in_a_row = 0;
        let mut last_errno = 0;
        let mut gave_up = None;
        let mut stalled = false;
        let mut total = 0;
        let mut cpu = CpuMeter::new(begin_ns);

        sleep_until(start_ns);
        let mut now_ns = monotonic_ns();
        let stopped_ns = loop {
            if now_ns >= end_ns {
                break end_ns;
            }
            if self.stop.load(Ordering::Relaxed) {
                break now_ns;
            }
            if failures_in_a_row >= MAX_FAILURES_IN_A_ROW {
                let name = error_name(last_errno);
                gave_up = Some(format!(
                    "gave up after {failures_in_a_row} failed operations in a row, the last with: {name}"
                ));
                break now_ns;
            }
            if now_ns >= look_at_ns {
                look_at_ns = now_ns + look_every_ns;
                if slots.older_than(now_ns.saturating_sub(self.timeout_ns)) > 0 {
                    stalled = true;
                    break now_ns;
                }
            }
            cpu.look(now_ns);
            if now_ns >= issue_at_ns {
                issue_at_ns = match self.open_loop {
                    None if PLAIN || self.replay.is_none() => {
                        self.issue::<B, PLAIN>(backend, &mut slots, now_ns)
                    }
                    None => self.issue_recorded(backend, &mut slots, now_ns),
                    Some(_) => self.issue_due(backend, &mut slots, now_ns),
                };
                if !PLAIN && slots.is_idle() && self.replay.as_mut().is_some_and(|replay| replay.is_over()) {
                    break now_ns;
                }
            }
            // Without a moment to wake up at, only a completion brings work.
            let wake_ns = (issue_at_ns > now_ns).then(|| (issue_at_ns - lead_ns).min(now_ns + NAP_NS));
            if slots.is_idle() {
                sleep_until(wake_ns.unwrap_or(0).min(end_ns));
                now_ns = monotonic_ns();
                continue;
            }
            completions.clear();
            if B::BLOCKS {
                let (driven, kept) =
                    self.parking.during(recorder, now_ns, || backend.drive(wake_ns, &mut completions));
                driven?;
                let Some(kept) = kept else { return Err(io::ErrorKind::TimedOut.into()) };
                recorder = kept;
            } else {
                backend.drive(wake_ns, &mut completions)?;
            }
            now_ns = monotonic_ns();
            for Completion { slot, result } in completions.drain(..) {
                let InFlight { op, start_ns, issued_ns } = slots.release(slot);
                let moves = if op.direction == Direction::Trim { 0 } else { op.len };
                let succeeded = u32::try_from(result) == Ok(moves);
                if succeeded {
                    recorder.success(now_ns, op.direction, op.len, now_ns - start_ns);
                    failures_in_a_row = 0;
                    total += 1;
                } else {
                    last_errno = (-result).max(0);
                    recorder.failure(now_ns, last_errno);
                    failures_in_a_row += 1;
                }
                if let Some(live) = self.live.filter(|_| !PLAIN) {
                    match succeeded {
                        true if op.direction.moves_data() => live.success(op.len, now_ns - start_ns),
                        true => {}
                        false => live.failure(),
                    }
                }
                if !PLAIN && paced && succeeded && op.direction != Direction::Flush {
                    recorder.service(now_ns, now_ns - issued_ns);
                }
                if let Some(verifier) = self.verifier.as_mut().filter(|_| !PLAIN) {
                    verifier.completed(op, succeeded, self.buffers.slot(slot as usize));
                }
            }
            self.completed.store(total, Ordering::Relaxed);
        };
        let cpu_ns = cpu.used();
        let open_loop = self.open_loop.take().map(|open_loop| open_loop.finish(stopped_ns));
        let replay = self.replay.take().map(|replay| replay.finish(stopped_ns));
        let drain_ns = if stalled { STALLED_DRAIN_NS.min(self.timeout_ns) } else { self.timeout_ns };
        self.drain(backend, &mut slots, drain_ns)?;
        let left = slots.under_way();
        if stalled || left > 0 {
            // An operation that came back while draining has still taken too long.
            recorder.stalled(left.max(1));
            gave_up = Some(stall_note(left.max(1), self.timeout_ns));
            self.stop.store(true, Ordering::Relaxed);
        }
        if left > 0 {
            // The kernel may yet write into them: memory lost is better than memory corrupted.
            std::mem::forget(self.buffers);
        }
        let verification = self.verifier.map(Verifier::finish);
        Ok(WorkerReport { recorder, open_loop, replay, verification, stopped_ns, cpu_ns, gave_up })
    }

    /// Fills free slots until there is none, or a delay is due; returns when that delay ends.
    #[inline]
    fn issue<B: Backend, const PLAIN: bool>(
        &mut self,
        backend: &mut B,
        slots: &mut Slots,
        mut now_ns: u64,
    ) -> u64 {
        let mut refused = 0;
        while let Some(slot) = slots.take() {
            let op = match self.stream.next_step() {
                Step::Issue(op) => op,
                Step::Wait(delay_ns) => {
                    slots.put_back(slot);
                    return now_ns + delay_ns;
                }
            };
            if !PLAIN && !self.may_start(op, &mut refused) {
                slots.put_back(slot);
                if refused >= MAX_CLAIMS_REFUSED {
                    break;
                }
                continue;
            }
            if op.direction == Direction::Write {
                now_ns = self.fill(slot, op);
            }
            slots.occupy(slot, InFlight { op, start_ns: now_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
        }
        0
    }

    /// Starts what is due while there are free slots; returns when the next operation is due if all
    /// that are have been started.
    fn issue_due(&mut self, backend: &mut impl Backend, slots: &mut Slots, mut now_ns: u64) -> u64 {
        // Taken out meanwhile, so that it and the rest of the worker can both be changed.
        let Some(mut open_loop) = self.open_loop.take() else { return 0 };
        let mut refused = 0;
        let mut wake_ns = 0;
        open_loop.collect(now_ns);
        while refused < MAX_CLAIMS_REFUSED {
            let Some(intended_ns) = open_loop.due() else {
                wake_ns = open_loop.next_ns();
                break;
            };
            let Some(slot) = slots.take() else { break };
            let op = match self.stream.next_step() {
                Step::Issue(op) if self.may_start(op, &mut refused) => op,
                // With a rate there are no delays: `LoadSpec::validate` refuses them.
                Step::Issue(_) | Step::Wait(_) => {
                    slots.put_back(slot);
                    continue;
                }
            };
            if op.direction == Direction::Write {
                now_ns = self.fill(slot, op);
            }
            // A flush belongs to the write before it and takes nobody's turn.
            let takes_turn = op.direction != Direction::Flush;
            let start_ns = if takes_turn { intended_ns } else { now_ns };
            slots.occupy(slot, InFlight { op, start_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
            if takes_turn {
                open_loop.started();
            }
        }
        open_loop.note_backlog();
        self.open_loop = Some(open_loop);
        wake_ns
    }

    /// Starts what the trace has for now while there are free slots; returns when its next operation is
    /// due if all that are have been started.
    fn issue_recorded(&mut self, backend: &mut impl Backend, slots: &mut Slots, mut now_ns: u64) -> u64 {
        // Taken out meanwhile, as above.
        let Some(mut replay) = self.replay.take() else { return 0 };
        let mut wake_ns = 0;
        replay.collect(now_ns);
        while let Some(slot) = slots.take() {
            let (op, start_ns) = match replay.next(now_ns) {
                // The order is the trace's: what cannot start yet holds up what comes after it.
                Next::Start(op, start_ns) if self.may_start(op, &mut 0) => (op, start_ns),
                next => {
                    slots.put_back(slot);
                    wake_ns = if let Next::Wait(until_ns) = next { until_ns } else { 0 };
                    break;
                }
            };
            if op.direction == Direction::Write {
                now_ns = self.fill(slot, op);
            }
            let start_ns = if replay.is_paced() { start_ns } else { now_ns };
            slots.occupy(slot, InFlight { op, start_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
            replay.started();
        }
        replay.note_backlog();
        self.replay = Some(replay);
        wake_ns
    }

    /// Whether nothing else is under way on the operation's blocks, where that matters.
    #[inline]
    fn may_start(&mut self, op: Op, refused: &mut u32) -> bool {
        let Some(verifier) = &mut self.verifier else { return true };
        let granted = verifier.claim(op);
        *refused += u32::from(!granted);
        granted
    }

    /// Gives a write its contents, which is not part of its latency; returns the time afterwards.
    #[inline]
    fn fill(&mut self, slot: u32, op: Op) -> u64 {
        match &self.verifier {
            None => self.buffers.renew(slot as usize, op.len as usize),
            Some(verifier) => verifier.fill(op, self.buffers.slot(slot as usize)),
        }
        monotonic_ns()
    }

    /// Waits, within the limit, until nothing is under way.
    fn drain<B: Backend>(&mut self, backend: &mut B, slots: &mut Slots, limit_ns: u64) -> io::Result<()> {
        let limit_ns = monotonic_ns() + limit_ns;
        let mut completions = Vec::new();
        while !slots.is_idle() && monotonic_ns() < limit_ns {
            backend.drive(Some(limit_ns.min(monotonic_ns() + NAP_NS)), &mut completions)?;
            for Completion { slot, result } in completions.drain(..) {
                let InFlight { op, .. } = slots.release(slot);
                let moves = if op.direction == Direction::Trim { 0 } else { op.len };
                if let Some(verifier) = &mut self.verifier {
                    let succeeded = u32::try_from(result) == Ok(moves);
                    verifier.completed(op, succeeded, self.buffers.slot(slot as usize));
                }
            }
        }
        Ok(())
    }
}

/// What a reader of the results is told about a target that does not answer.
pub(crate) fn stall_note(operations: usize, timeout_ns: u64) -> String {
    format!(
        "the target stalled: {operations} operation(s) took longer than --timeout {}, so the load ended early",
        format_duration_ns(timeout_ns)
    )
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
