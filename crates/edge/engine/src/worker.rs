//! One worker: a thread that keeps its outstanding I/Os in flight.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use virtbench_record::Verification;
use virtbench_workload::{Direction, NextOp, Op, Stream};

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{WorkerClock, sleep_until};
use crate::flow::FlowShare;
use crate::live::{CpuMeter, LiveCounters};
use crate::open_loop::{Moments, OpenLoop, OpenLoopCounts};
use crate::recorder::Recorder;
use crate::replay::{Next, ReplayCounts, ReplayLoop};
use crate::slots::{Belongings, End, InFlight, Parking, Score, Slots, stall_note};
use crate::verify::Verifier;

/// The longest a worker with nothing in flight sleeps before it looks at its stop flag.
const NAP_NS: u64 = 50_000_000;
/// Once an operation has taken too long, how long the others may take to complete.
const STALLED_DRAIN_NS: u64 = 1_000_000_000;
/// How long before an intended start a worker stops sleeping: a wake-up in a virtual machine takes
/// tens of microseconds, which would otherwise count as the target's.
const OPEN_LOOP_LEAD_NS: u64 = 30_000;
/// No moment of any load.
const NEVER_NS: u64 = u64::MAX;
/// Blocks drawn in vain, because each has an operation in flight already, before a worker that
/// verifies waits for a completion.
const MAX_CLAIMS_REFUSED: u32 = 64;

/// What a worker brings back.
pub(crate) struct WorkerReport {
    /// Everything it saw.
    pub recorder: Box<Recorder>,
    /// The result of its open loop, where it had one.
    pub open_loop: Option<OpenLoopCounts>,
    /// What it replayed of a trace, where it had one.
    pub replay: Option<ReplayCounts>,
    /// What it found damaged, where it verified.
    pub verification: Option<Verification>,
    /// Whether it has done all of an amount.
    pub has_done_all: bool,
    /// When it stopped measuring.
    pub stopped_ns: u64,
    /// CPU time it used while measuring, in nanoseconds (user, system).
    pub cpu_ns: [u64; 2],
    /// Why it ended before its time, if it did so by itself.
    pub gave_up: Option<String>,
    /// What a reader should know of the clock it read.
    pub clock_note: Option<String>,
}

impl WorkerReport {
    /// Whether it ended neither when its time was up, nor with its amount or its part of a trace.
    pub(crate) fn was_cut_short(&self, moments: Moments) -> bool {
        let whole = self.has_done_all || self.replay.is_some_and(|replay| replay.whole);
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
    /// Its part in a flow, where it keeps step with other workers.
    pub flow: Option<FlowShare>,
    pub stop: &'a AtomicBool,
    pub completed: &'a AtomicU64,
    /// What an observer gets for each operation.
    pub live: Option<&'a LiveCounters>,
    pub parking: &'a Parking,
    pub clock: WorkerClock,
    /// Whether the clock is read for each operation.
    pub reads_each: bool,
}

impl Worker<'_> {
    /// Runs the load to its end on this thread.
    ///
    /// # Errors
    /// The kernel refused to take or return operations at all; failed operations are recorded.
    pub(crate) fn run<B: Backend>(self, backend: &mut B) -> io::Result<WorkerReport> {
        // Two loops from one source: asking each operation whether it has an intended start, is
        // verified, watched or has a clock reading of its own would cost a plain load, of 15 ns an operation, a good part of that.
        let special = self.open_loop.is_some()
            || self.verifier.is_some()
            || self.replay.is_some()
            || self.flow.is_some()
            || self.reads_each;
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
        let mut recorder = Box::new(Recorder::new(begin_ns, end_ns, self.interval_ns, self.stream.lines()));
        let lead_ns = if self.is_paced() { OPEN_LOOP_LEAD_NS } else { 0 };
        let mut look_at_ns = start_ns + self.look_every_ns();
        let mut issue_at_ns = 0;
        let mut score = Score::default();
        let mut cpu = CpuMeter::new(begin_ns);

        sleep_until(start_ns);
        let mut now_ns = self.clock.now_ns();
        let end = loop {
            if let Some(end) = self.ends(now_ns, &mut look_at_ns, &slots, &score) {
                break end;
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
                    break End::at(now_ns);
                }
            }
            // Without a moment to wake up at, only a completion brings work.
            let wake_ns = (issue_at_ns > now_ns).then(|| (issue_at_ns - lead_ns).min(now_ns + NAP_NS));
            if slots.is_idle() {
                if self.stream.is_over() {
                    break End::at(now_ns);
                }
                sleep_until(wake_ns.unwrap_or(0).min(end_ns));
                now_ns = self.clock.now_ns();
                continue;
            }
            completions.clear();
            if B::BLOCKS {
                let belongings = self.leave(recorder, &slots);
                let (driven, kept) =
                    self.parking.during(belongings, now_ns, || backend.drive(wake_ns, &mut completions));
                driven?;
                let Some(kept) = kept else { return Err(io::ErrorKind::TimedOut.into()) };
                (recorder, self.open_loop) = (kept.recorder, kept.open_loop);
            } else {
                backend.drive(wake_ns, &mut completions)?;
            }
            now_ns = self.clock.now_ns();
            for completion in completions.drain(..) {
                now_ns = self.reading::<PLAIN>(now_ns);
                self.complete::<PLAIN>(&mut recorder, &mut slots, &mut score, completion, now_ns);
            }
            self.completed.store(score.completed, Ordering::Relaxed);
        };
        let cpu_ns = cpu.used();
        self.finish(backend, slots, recorder, end, cpu_ns)
    }

    /// How often stalled operations are looked for, nanoseconds.
    fn look_every_ns(&self) -> u64 {
        (self.timeout_ns / 4).clamp(1, NAP_NS)
    }

    /// Whether the load ends now, though there is more to be done.
    #[inline]
    fn ends(&self, now_ns: u64, look_at_ns: &mut u64, slots: &Slots, score: &Score) -> Option<End> {
        if now_ns >= self.moments.end_ns {
            return Some(End::at(self.moments.end_ns));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Some(End::at(now_ns));
        }
        if let Some(note) = score.gives_up() {
            return Some(End { gave_up: Some(note), ..End::at(now_ns) });
        }
        if now_ns >= *look_at_ns {
            *look_at_ns = now_ns + self.look_every_ns();
            if slots.has_older_than(now_ns.saturating_sub(self.timeout_ns)) {
                return Some(End { stalled: true, ..End::at(now_ns) });
            }
        }
        None
    }

    /// Waits for what is in flight, and reports.
    fn finish<B: Backend>(
        mut self,
        backend: &mut B,
        mut slots: Slots,
        mut recorder: Box<Recorder>,
        end: End,
        cpu_ns: [u64; 2],
    ) -> io::Result<WorkerReport> {
        let End { stopped_ns, stalled, mut gave_up } = end;
        let has_done_all = self.stream.is_over();
        let (stopped_ns, early) = recorder.end_at(stopped_ns);
        let open_loop = self
            .open_loop
            .take()
            .map(|open_loop| open_loop.finish(stopped_ns, |due| recorder.unstarted(due)));
        let replay =
            self.replay.take().map(|replay| replay.finish(stopped_ns, |due| recorder.unstarted(due)));
        let drain_ns = if stalled { STALLED_DRAIN_NS.min(self.timeout_ns) } else { self.timeout_ns };
        self.drain(backend, &mut slots, &mut recorder, drain_ns)?;
        if recorder.stalls() > 0 {
            gave_up = Some(stall_note(recorder.stalls(), self.timeout_ns, early));
            self.stop.store(true, Ordering::Relaxed);
        }
        if !slots.is_idle() {
            // The kernel may yet write into them: memory lost is better than memory corrupted.
            std::mem::forget(self.buffers);
        }
        let verification = self.verifier.map(Verifier::finish);
        Ok(WorkerReport {
            recorder,
            open_loop,
            replay,
            verification,
            has_done_all,
            stopped_ns,
            cpu_ns,
            gave_up,
            clock_note: self.clock.note(),
        })
    }

    /// What somebody needs who has to go on without this thread.
    fn leave(&mut self, recorder: Box<Recorder>, slots: &Slots) -> Belongings {
        Belongings {
            recorder,
            open_loop: self.open_loop.take(),
            replay: self.replay.as_mut().map(|replay| replay.so_far()),
            operation: slots.in_flight().next(),
        }
    }

    /// The time for one operation of a batch, which began at `now_ns`.
    #[inline]
    fn reading<const PLAIN: bool>(&mut self, now_ns: u64) -> u64 {
        if !PLAIN && self.reads_each { self.clock.now_ns() } else { now_ns }
    }

    /// Whether operations have intended starts.
    fn is_paced(&self) -> bool {
        self.open_loop.is_some() || self.replay.as_ref().is_some_and(|replay| replay.is_paced())
    }

    /// Takes an operation back and records it. A call of its own takes a sixth of the null target's loop.
    #[inline(always)]
    fn complete<const PLAIN: bool>(
        &mut self,
        recorder: &mut Recorder,
        slots: &mut Slots,
        score: &mut Score,
        completion: Completion,
        now_ns: u64,
    ) {
        let (InFlight { op, start_ns, issued_ns }, succeeded) = self.take_back::<PLAIN>(slots, completion);
        if succeeded {
            recorder.success(now_ns, op, now_ns - start_ns);
            score.failures_in_a_row = 0;
            score.completed += 1;
        } else {
            score.last_errno = (-completion.result).max(0);
            recorder.failure(now_ns, op.direction, score.last_errno, now_ns - start_ns);
            score.failures_in_a_row += 1;
        }
        if PLAIN {
            return;
        }
        match self.live {
            Some(live) if !succeeded => live.failure(),
            Some(live) if op.direction.moves_data() => live.success(op.len, now_ns - start_ns),
            _ => {}
        }
        if succeeded && op.direction != Direction::Flush && self.is_paced() {
            recorder.service(now_ns, now_ns - issued_ns);
        }
    }

    /// Takes an operation back; answers which it was and whether it succeeded.
    #[inline]
    fn take_back<const PLAIN: bool>(
        &mut self,
        slots: &mut Slots,
        Completion { slot, result }: Completion,
    ) -> (InFlight, bool) {
        let operation = slots.release(slot);
        let op = operation.op;
        let moves = if op.direction == Direction::Trim { 0 } else { op.len };
        let succeeded = u32::try_from(result) == Ok(moves);
        if let Some(verifier) = self.verifier.as_mut().filter(|_| !PLAIN) {
            verifier.completed(op, succeeded, self.buffers.slot(slot as usize));
        }
        (operation, succeeded)
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
        loop {
            if let Some(flow) = self.flow.as_mut().filter(|_| !PLAIN)
                && let Some(look_ns) = flow.held_until(now_ns, slots.is_idle())
            {
                return look_ns;
            }
            let Some(slot) = slots.take() else { return 0 };
            let op = match self.stream.next_step() {
                NextOp::Issue(op) => op,
                NextOp::Wait(delay_ns) => {
                    slots.put_back(slot);
                    return now_ns + delay_ns;
                }
                NextOp::End => {
                    slots.put_back(slot);
                    return NEVER_NS;
                }
            };
            if !PLAIN && !self.may_start(op, &mut refused) {
                slots.put_back(slot);
                if refused >= MAX_CLAIMS_REFUSED {
                    return 0;
                }
                continue;
            }
            now_ns = match op.direction {
                Direction::Write => self.fill(slot, op),
                _ => self.reading::<PLAIN>(now_ns),
            };
            slots.occupy(slot, InFlight { op, start_ns: now_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
            self.flow.as_mut().filter(|_| !PLAIN).into_iter().for_each(FlowShare::started);
        }
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
            if let Some(look_ns) =
                self.flow.as_mut().and_then(|flow| flow.held_until(now_ns, slots.is_idle()))
            {
                wake_ns = look_ns;
                break;
            }
            let Some(slot) = slots.take() else { break };
            let op = match self.stream.next_step() {
                NextOp::Issue(op) if self.may_start(op, &mut refused) => op,
                NextOp::End => {
                    slots.put_back(slot);
                    open_loop.close();
                    wake_ns = NEVER_NS;
                    break;
                }
                // What becomes due during a delay waits, and then starts at once.
                NextOp::Wait(delay_ns) => {
                    slots.put_back(slot);
                    wake_ns = now_ns + delay_ns;
                    break;
                }
                NextOp::Issue(_) => {
                    slots.put_back(slot);
                    continue;
                }
            };
            now_ns = match op.direction {
                Direction::Write => self.fill(slot, op),
                _ => self.reading::<false>(now_ns),
            };
            // A flush belongs to the write before it and takes nobody's turn.
            let takes_turn = op.direction != Direction::Flush;
            let start_ns = if takes_turn { intended_ns } else { now_ns };
            slots.occupy(slot, InFlight { op, start_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
            if takes_turn {
                open_loop.started();
                self.flow.iter_mut().for_each(FlowShare::started);
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
            now_ns = match op.direction {
                Direction::Write => self.fill(slot, op),
                _ => self.reading::<false>(now_ns),
            };
            let start_ns = if replay.is_paced() { start_ns } else { now_ns };
            slots.occupy(slot, InFlight { op, start_ns, issued_ns: now_ns });
            backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
            replay.started();
        }
        replay.note_backlog();
        self.replay = Some(replay);
        wake_ns
    }

    /// Whether nothing else is in flight on the operation's blocks, where that matters.
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
        self.clock.now_ns()
    }

    /// Waits, within the limit, until nothing is in flight. What took longer than the time limit, or is
    /// still in flight then, has stalled.
    fn drain<B: Backend>(
        &mut self,
        backend: &mut B,
        slots: &mut Slots,
        recorder: &mut Recorder,
        limit_ns: u64,
    ) -> io::Result<()> {
        let limit_ns = self.clock.now_ns() + limit_ns;
        let mut completions = Vec::new();
        let mut now_ns = self.clock.now_ns();
        while !slots.is_idle() && now_ns < limit_ns {
            backend.drive(Some(limit_ns.min(now_ns + NAP_NS)), &mut completions)?;
            now_ns = self.clock.now_ns();
            for completion in completions.drain(..) {
                if now_ns - slots.at(completion.slot).issued_ns <= self.timeout_ns {
                    self.complete::<false>(recorder, slots, &mut Score::default(), completion, now_ns);
                } else {
                    let (InFlight { op, start_ns, .. }, _) = self.take_back::<false>(slots, completion);
                    recorder.stalled(now_ns, op.direction, now_ns - start_ns);
                }
            }
        }
        for InFlight { op, start_ns, .. } in slots.in_flight() {
            recorder.stalled(now_ns, op.direction, now_ns.saturating_sub(start_ns));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
