//! The loop of virtual time.

use thiserror::Error;
use virtbench_fence::{
    BufferId, Completion, Config, ConfigError, Device, DiskId, Effect, Fence, IoId, Op, Request, RequestId,
    Scheduler, Time,
};
use virtbench_units::SeedSequence;
use virtbench_workload::TraceAction;

use crate::calendar::{Calendar, MAX_WHAT};
use crate::client::Client;
use crate::disk::{Command, DiskError, Hdd, HddModel, Model, Order, Ssd, SsdModel, Station};
use crate::machines::Machines;
use crate::outcome::{Events, Outcome, VmOutcome};

/// What an event says, less the threads' numbers.
const DONE: [u32; 2] = [MAX_WHAT, MAX_WHAT - 1];
/// The trace of virtual machine number n is due: this less n.
const TRACE: u32 = MAX_WHAT - 2;
/// The most threads of all machines together.
const MOST_THREADS: usize = 1 << 20;
/// A request of a trace: this bit, the machine, the operation's number.
const TRACE_REQUEST: u64 = 1 << 63;
const TRACE_VM_SHIFT: u32 = 40;
/// The fence's timer may fire so often at one moment; a fence that wants more makes no progress.
const MOST_TIMERS: u32 = 10_000;

/// How long a world runs, in nanoseconds of its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before anything counts.
    pub warm_up_ns: u64,
    /// What counts.
    pub measure_ns: u64,
}

/// Everything a world is made of.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// The fence: virtual disks, devices' sizes, cache, scheduler.
    pub fence: Config,
    /// The slow device.
    pub hdd: HddModel,
    /// The fast device.
    pub ssd: SsdModel,
    /// In which order the slow device serves what was dispatched to it.
    pub hdd_order: Order,
    /// By virtual disk.
    pub clients: Vec<Client>,
    /// How often each file is accessed, on average, to fill the caches before time begins: the devices
    /// are then as good as instantaneous. 0 begins with empty caches.
    pub fill: u32,
    /// How long it runs.
    pub span: Span,
    /// Of every random choice.
    pub seed: u64,
}

/// A world that cannot be, or that broke.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum WorldError {
    /// The fence's configuration does not fit.
    #[error(transparent)]
    Fence(#[from] ConfigError),
    /// A disk model describes no disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Not a client for each disk.
    #[error("{clients} clients for {disks} virtual disks: give each disk one, Off if it is not in use")]
    Clients {
        clients: usize,
        /// Wanted.
        disks: usize,
    },
    /// Too many threads to number.
    #[error("{0} threads: at most 1048576 fit into a world")]
    Threads(usize),
    /// A trace goes back in time.
    #[error(
        "operation {index} of the trace of disk {disk} is earlier than the one before: sort the trace by time"
    )]
    TraceOrder {
        /// The disk whose trace it is.
        disk: usize,
        /// From zero.
        index: usize,
    },
    /// The measured span is empty.
    #[error("the measured span is empty: give it some time")]
    NoTime,
    /// The fence asked for its timer again and again at one moment.
    #[error("the scheduler makes no progress at {0} ns: its deadline stays in the past")]
    Stuck(u64),
    /// The fence answered a request that was not submitted.
    #[error("the fence and its devices disagree on an I/O at {0} ns")]
    Lost(u64),
}

/// A fence, its devices and its clients in virtual time.
pub struct World {
    fence: Fence,
    stations: [Station<IoId>; 2],
    machines: Machines,
    calendar: Calendar,
    figures: Vec<VmOutcome>,
    span: Span,
    /// When the span began: behind the filling of caches.
    origin_ns: u64,
    /// Threads that fill caches; none does when time has begun.
    filling: usize,
    cache_before: Option<[u64; 2]>,
    max_request: u64,
    now_ns: u64,
    events: Events,
}

impl World {
    /// A world with the scheduler that its configuration names.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn new(config: WorldConfig) -> Result<Self, WorldError> {
        let fence = Fence::new(config.fence.clone())?;
        Self::around(fence, config)
    }

    /// A world with a scheduler of the caller's.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn with_scheduler(config: WorldConfig, scheduler: Box<dyn Scheduler>) -> Result<Self, WorldError> {
        let fence = Fence::with_scheduler(config.fence.clone(), scheduler)?;
        Self::around(fence, config)
    }

    fn around(fence: Fence, config: WorldConfig) -> Result<Self, WorldError> {
        check(&config)?;
        let mut seeds = SeedSequence::new(config.seed);
        let (hdd_seed, ssd_seed) = (seeds.next_seed(), seeds.next_seed());
        let hdd = Model::Hdd(Hdd::new(config.hdd, hdd_seed));
        let ssd = Model::Ssd(Ssd::new(config.ssd, ssd_seed));
        let sizes: Vec<u64> = config.fence.disks.iter().map(|disk| disk.size_bytes).collect();
        let machines = Machines::new(&config.clients, &sizes, seeds.next_seed());
        let mut world = Self {
            fence,
            stations: [Station::new(hdd, config.hdd_order), Station::new(ssd, Order::Arrival)],
            machines,
            calendar: Calendar::default(),
            figures: config.clients.iter().map(|_| VmOutcome::new(config.span.measure_ns)).collect(),
            span: config.span,
            origin_ns: 0,
            filling: 0,
            cache_before: None,
            max_request: u64::from(config.fence.max_request_bytes),
            now_ns: 0,
            events: Events::default(),
        };
        if config.fill > 0 && world.machines.begin_filling(config.fill) {
            world.filling = world.machines.threads.len();
            world.stations.iter_mut().for_each(|station| station.hurried = true);
            for thread in 0..world.filling {
                world.fill(thread);
            }
        } else {
            world.begin();
        }
        Ok(world)
    }

    /// Runs for the span, warm-up first, and says what came of it.
    ///
    /// # Errors
    /// The fence or its scheduler broke its contract.
    pub fn run(mut self) -> Result<Outcome, WorldError> {
        let mut timers = 0;
        loop {
            let counts_from_ns = self.origin_ns.saturating_add(self.span.warm_up_ns);
            let end_ns = counts_from_ns.saturating_add(self.span.measure_ns);
            let event_ns = self.calendar.next_ns().unwrap_or(u64::MAX);
            let timer_ns = self.fence.next_deadline().map_or(u64::MAX, Time::ns);
            let next_ns = event_ns.min(timer_ns).max(self.now_ns);
            if self.cache_before.is_none() && self.filling == 0 && next_ns >= counts_from_ns {
                self.cache_before = Some(self.cache_reads());
            }
            if next_ns >= end_ns && self.filling == 0 {
                break;
            }
            if next_ns == u64::MAX {
                return Err(WorldError::Stuck(self.now_ns));
            }
            timers = if next_ns > self.now_ns { 0 } else { timers };
            self.now_ns = next_ns;
            if timer_ns <= event_ns {
                timers += 1;
                if timers > MOST_TIMERS {
                    return Err(WorldError::Stuck(self.now_ns));
                }
                self.events.deadlines += 1;
                self.fence.on_timer(Time::from_ns(self.now_ns));
            } else if let Some((_, what)) = self.calendar.take() {
                self.events.calendar += 1;
                self.happen(what)?;
            }
            self.carry_out()?;
        }
        let whole = self.span.warm_up_ns.saturating_add(self.span.measure_ns) as f64;
        let (before, after) = (self.cache_before.unwrap_or_default(), self.cache_reads());
        let cache_reads = [after[0] - before[0], after[1] - before[1]];
        let busy = [0, 1].map(|device: usize| self.stations[device].busy_ns() as f64 / whole);
        Ok(Outcome { vms: self.figures, events: self.events, cache_reads, busy })
    }

    #[inline]
    fn happen(&mut self, what: u32) -> Result<(), WorldError> {
        if let Some(device) = DONE.iter().position(|done| *done == what) {
            let (io, next) = self.stations[device].done().ok_or(WorldError::Lost(self.now_ns))?;
            if let Some(ns) = next {
                self.calendar.enter(self.now_ns.saturating_add(ns), what);
            }
            let completion = Completion { io, result: Ok(()), data_crc: 0 };
            return self
                .fence
                .on_device(Time::from_ns(self.now_ns), completion)
                .map_err(|_| WorldError::Lost(self.now_ns));
        }
        if what as usize >= self.machines.threads.len() {
            self.issue_trace((TRACE - what) as usize);
        } else {
            self.issue(what as usize);
        }
        Ok(())
    }

    /// Carries out what the fence wants.
    #[inline]
    fn carry_out(&mut self) -> Result<(), WorldError> {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    self.events.dispatched += 1;
                    let device = match io.device {
                        Device::Slow => 0,
                        Device::Fast => 1,
                    };
                    let command =
                        Command { tag: io.id, offset: io.offset_bytes, len: io.len_bytes, op: io.op };
                    if let Some(ns) = self.stations[device].take_in(command) {
                        self.calendar.enter(self.now_ns.saturating_add(ns), DONE[device]);
                    }
                }
                // There is no data; its time is not the devices'.
                Effect::Copy { .. } => {}
                Effect::Complete { request, result } => {
                    self.events.answered += 1;
                    self.answered(request, result.is_ok())?;
                }
            }
        }
        Ok(())
    }

    /// Time begins.
    fn begin(&mut self) {
        self.origin_ns = self.now_ns;
        self.stations.iter_mut().for_each(Station::begin_time);
        for thread in 0..self.machines.threads.len() {
            self.start(thread);
        }
        for vm in 0..self.machines.tracers.len() {
            self.await_trace(vm);
        }
    }

    /// A thread goes on filling its machine's cache, or stops; time begins when all have.
    #[allow(clippy::cast_possible_truncation)] // at most MOST_THREADS
    fn fill(&mut self, thread: usize) {
        if self.machines.fills(thread) {
            self.calendar.enter(self.now_ns, thread as u32);
            return;
        }
        self.filling -= 1;
        if self.filling == 0 {
            self.begin();
        }
    }

    fn cache_reads(&self) -> [u64; 2] {
        self.fence.cache_counts().fold([0, 0], |sum, counts| [sum[0] + counts.hits, sum[1] + counts.misses])
    }

    /// A thread makes its first access at a random time of the first second. Threads without think time
    /// that began together, machine by machine, would stay in that order for ever under FIFO.
    #[allow(clippy::cast_possible_truncation)] // at most MOST_THREADS
    fn start(&mut self, thread: usize) {
        let ns = self.machines.threads[thread].start_ns();
        self.calendar.enter(self.now_ns.saturating_add(ns), thread as u32);
    }

    /// A thread thinks before its next access.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most MOST_THREADS
    fn think(&mut self, thread: usize) {
        let ns = self.machines.think_ns(thread);
        self.calendar.enter(self.now_ns.saturating_add(ns), thread as u32);
    }

    /// A thread makes an access: all its requests at once.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most max_request, which is 32 bits
    fn issue(&mut self, index: usize) {
        let Some(step) = self.machines.step(index) else {
            // Not all reads are answered so: page_cache_hits is below one.
            if self.filling > 0 {
                self.fill(index);
            } else {
                self.think(index);
            }
            return;
        };
        let thread = &mut self.machines.threads[index];
        thread.began_ns = self.now_ns;
        thread.bytes = step.len;
        thread.pending = 0;
        let disk = DiskId(thread.vm);
        let mut done = 0;
        while done < step.len {
            let len = (step.len - done).min(self.max_request);
            self.machines.threads[index].pending += 1;
            let request = Request {
                id: RequestId(index as u64),
                disk,
                op: if step.write { Op::Write } else { Op::Read },
                offset_bytes: step.offset + done,
                len_bytes: len as u32,
                buffer: BufferId(index as u64),
            };
            self.events.submitted += 1;
            self.fence.submit(Time::from_ns(self.now_ns), request);
            done += len;
        }
    }

    /// A request was answered.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // what issue() made of an index
    fn answered(&mut self, request: RequestId, well: bool) -> Result<(), WorldError> {
        if request.0 & TRACE_REQUEST != 0 {
            return self.trace_answered(request.0 & !TRACE_REQUEST, well);
        }
        let index = request.0 as usize;
        let thread = self.machines.threads.get_mut(index).ok_or(WorldError::Lost(self.now_ns))?;
        let vm = usize::from(thread.vm);
        if !well {
            self.figures[vm].failed += 1;
        }
        thread.pending = thread.pending.checked_sub(1).ok_or(WorldError::Lost(self.now_ns))?;
        if thread.pending == 0 {
            let (began_ns, bytes) = (thread.began_ns, thread.bytes);
            if self.filling > 0 {
                self.fill(index);
            } else {
                self.count(vm, began_ns, bytes);
                self.think(index);
            }
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, vm: usize, began_ns: u64, bytes: u64) {
        if self.now_ns >= self.origin_ns.saturating_add(self.span.warm_up_ns) {
            let figures = &mut self.figures[vm];
            figures.accesses += 1;
            figures.bytes += bytes;
            figures.response.record(self.now_ns - began_ns);
        }
    }

    /// Enters when a trace goes on.
    #[allow(clippy::cast_possible_truncation)] // at most 65535 disks
    fn await_trace(&mut self, vm: usize) {
        let due = self.machines.tracers[vm].as_ref().and_then(|tracer| tracer.due_ns());
        if let Some(due_ns) = due {
            self.calendar.enter(due_ns.saturating_add(self.origin_ns).max(self.now_ns), TRACE - vm as u32);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // at most 65535 disks
    fn issue_trace(&mut self, vm: usize) {
        let Some(tracer) = &mut self.machines.tracers[vm] else { return };
        if let Some((number, op)) = tracer.take(self.now_ns - self.origin_ns) {
            let id = TRACE_REQUEST | ((vm as u64) << TRACE_VM_SHIFT) | number;
            let request = Request {
                id: RequestId(id),
                disk: DiskId(vm as u16),
                op: if op.action == TraceAction::Write { Op::Write } else { Op::Read },
                offset_bytes: op.offset,
                len_bytes: op.len,
                buffer: BufferId(id),
            };
            self.events.submitted += 1;
            self.fence.submit(Time::from_ns(self.now_ns), request);
            self.await_trace(vm);
        }
        // Without room the next completion goes on.
    }

    fn trace_answered(&mut self, id: u64, well: bool) -> Result<(), WorldError> {
        let lost = WorldError::Lost(self.now_ns);
        let (vm, number) = ((id >> TRACE_VM_SHIFT) as usize, id & ((1 << TRACE_VM_SHIFT) - 1));
        let Some(Some(tracer)) = self.machines.tracers.get_mut(vm) else { return Err(lost) };
        let Some((due_ns, len)) = tracer.taken(number) else { return Err(lost) };
        let was_full = tracer.under_way >= tracer.outstanding;
        tracer.under_way = tracer.under_way.saturating_sub(1);
        if well {
            self.count(vm, due_ns.saturating_add(self.origin_ns), u64::from(len));
        } else {
            self.figures[vm].failed += 1;
        }
        if was_full {
            self.await_trace(vm);
        }
        Ok(())
    }
}

fn check(config: &WorldConfig) -> Result<(), WorldError> {
    config.hdd.check()?;
    config.ssd.check()?;
    let (clients, disks) = (config.clients.len(), config.fence.disks.len());
    if clients != disks {
        return Err(WorldError::Clients { clients, disks });
    }
    if config.span.measure_ns == 0 {
        return Err(WorldError::NoTime);
    }
    let mut threads = 0;
    for (disk, client) in config.clients.iter().enumerate() {
        match client {
            Client::Off => {}
            Client::Closed(closed) => threads += closed.threads as usize,
            Client::Trace { ops, .. } => {
                let back = ops.windows(2).position(|pair| pair[1].time_ns < pair[0].time_ns);
                if let Some(index) = back {
                    return Err(WorldError::TraceOrder { disk, index: index + 1 });
                }
            }
        }
    }
    if threads > MOST_THREADS {
        return Err(WorldError::Threads(threads));
    }
    Ok(())
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
