//! The virtual machines' threads, as flat arrays.

use std::sync::Arc;

use virtbench_units::{Random, SeedSequence};
use virtbench_workload::{Pace, Replay, TraceAction, TraceOp};

use crate::client::{AccessKind, Client, ClosedLoop, FileSet};

/// Threads begin within this time.
const START_NS: u64 = 1_000_000_000;

/// A closed-loop thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) vm: u16,
    /// Place in the personality's round.
    step: u16,
    file: u32,
    /// Requests of the access in flight.
    pub(crate) pending: u32,
    pub(crate) began_ns: u64,
    pub(crate) bytes: u64,
    random: Random,
}

/// What a closed-loop virtual machine's threads have in common.
#[derive(Debug)]
struct Shared {
    client: ClosedLoop,
    files: FileSet,
}

/// A trace on its way.
#[derive(Debug)]
pub(crate) struct Tracer {
    ops: Vec<(u64, TraceOp)>,
    next: usize,
    pub(crate) outstanding: u32,
    pub(crate) under_way: u32,
}

/// An access to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextAccess {
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// All threads of all virtual machines.
#[derive(Debug)]
pub(crate) struct Machines {
    shared: Vec<Option<Shared>>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) tracers: Vec<Option<Tracer>>,
    /// Accesses by which each machine has still to fill its cache.
    filling: Vec<u32>,
}

impl Machines {
    /// The threads of `clients`. A virtual machine's chance depends on the seed and its place alone,
    /// not on the others: alone and in company it does the same.
    pub(crate) fn new(clients: &[Client], disk_bytes: &[u64], seed: u64) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let mut machines =
            Self { shared: Vec::new(), threads: Vec::new(), tracers: Vec::new(), filling: Vec::new() };
        for (vm, client) in clients.iter().enumerate() {
            let mut own = SeedSequence::new(seeds.next_seed());
            let mut shared = None;
            let mut tracer = None;
            match client {
                Client::Off => {}
                Client::Closed(closed) => {
                    let set = FileSet::new(closed.personality, closed.files, disk_bytes[vm], own.next_seed());
                    for _ in 0..closed.threads {
                        machines.threads.push(Thread::new(vm, closed, own.next_seed()));
                    }
                    shared = Some(Shared { client: *closed, files: set });
                }
                Client::Trace { ops, pace, outstanding } => {
                    tracer = Some(Tracer::new(ops, *pace, *outstanding))
                }
            }
            machines.filling.push(0);
            machines.shared.push(shared);
            machines.tracers.push(tracer);
        }
        machines
    }

    /// Has every closed-loop machine fill its cache by so many accesses for each of its files. Says
    /// whether there are any.
    pub(crate) fn begin_filling(&mut self, times: u32) -> bool {
        for (filling, shared) in self.filling.iter_mut().zip(&self.shared) {
            *filling = shared.as_ref().map_or(0, |shared| shared.client.files.saturating_mul(times));
        }
        self.threads.iter().any(|thread| self.filling[usize::from(thread.vm)] > 0)
    }

    /// Whether this thread's machine is still filling its cache; counts one access.
    pub(crate) fn fills(&mut self, thread: usize) -> bool {
        let left = &mut self.filling[usize::from(self.threads[thread].vm)];
        let fills = *left > 0;
        *left = left.saturating_sub(1);
        fills
    }

    /// A time until a thread's next access: exponential.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    pub(crate) fn think_ns(&mut self, thread: usize) -> u64 {
        let thread = &mut self.threads[thread];
        let Some(shared) = &self.shared[usize::from(thread.vm)] else { return u64::MAX };
        if shared.client.think_ns <= 0.0 {
            return 0;
        }
        // 1 - unit() lies in (0, 1], so the logarithm is finite.
        (-(1.0 - thread.random.unit()).ln() * shared.client.think_ns) as u64
    }

    /// A thread's next access; `None` where the page cache answers.
    #[inline]
    pub(crate) fn step(&mut self, thread: usize) -> Option<NextAccess> {
        let thread = &mut self.threads[thread];
        let shared = self.shared[usize::from(thread.vm)].as_ref()?;
        let round = shared.client.personality.round();
        let access = round[usize::from(thread.step)];
        thread.step = if usize::from(thread.step) + 1 == round.len() { 0 } else { thread.step + 1 };
        if !access.same_file {
            thread.file = shared.files.draw(&mut thread.random);
        }
        let write = access.kind != AccessKind::ReadWhole;
        if !write
            && shared.client.page_cache_hits > 0.0
            && thread.random.unit() < shared.client.page_cache_hits
        {
            return None;
        }
        let (offset, len) = shared.files.range(thread.file, access.kind, &mut thread.random);
        Some(NextAccess { write, offset, len })
    }
}

impl Thread {
    #[allow(clippy::cast_possible_truncation)] // below the length of a round, and checked by the world
    fn new(vm: usize, client: &ClosedLoop, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let step = random.below(client.personality.round().len() as u64) as u16;
        Self { vm: vm as u16, step, file: 0, pending: 0, began_ns: 0, bytes: 0, random }
    }

    /// When it makes its first access.
    pub(crate) fn start_ns(&mut self) -> u64 {
        self.random.below(START_NS)
    }
}

impl Tracer {
    fn new(ops: &Arc<[TraceOp]>, pace: Pace, outstanding: u32) -> Self {
        let moves = |op: &TraceOp| matches!(op.action, TraceAction::Read | TraceAction::Write);
        let ops =
            Replay::new(ops, pace, 0, 1).map(|(due, op)| (due, *op)).filter(|(_, op)| moves(op)).collect();
        Self { ops, next: 0, outstanding, under_way: 0 }
    }

    /// When the next operation is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.ops.get(self.next).map(|(due, _)| *due)
    }

    /// The next operation with its number, if it is due by `now_ns` and there is room for it.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<(u64, TraceOp)> {
        let (due, op) = *self.ops.get(self.next)?;
        if due > now_ns || self.under_way >= self.outstanding {
            return None;
        }
        self.next += 1;
        self.under_way += 1;
        Some((self.next as u64 - 1, op))
    }

    /// The time and length of an operation that was taken.
    pub(crate) fn taken(&self, number: u64) -> Option<(u64, u32)> {
        let (due, op) = self.ops.get(usize::try_from(number).ok()?)?;
        Some((*due, op.len))
    }
}
