//! Completely fair queueing, Linux's scheduler of disks until 5.0, as Linux 2.6.32 has it: the host's scheduler in [VirtualFence 2013]
//! (section 4.4). Facts from the kernel's `block/cfq-iosched.c` and `Documentation/block/cfq-iosched.txt`.
//!
//! Each process has a queue for what it waits for, and all of them share one for asynchronous I/O. A queue is served
//! alone for a slice of time that begins when its first I/O completes: 100 ms, or 40 ms for the shared one, a fifth more or
//! less for each level of priority. Queues take turns by a key, the time at which they were put back less what was left
//! of their slice. Within a queue I/Os go upwards by address, with short ways back at twice their length, and once a
//! slice the oldest goes first if it has waited too long. A queue that runs empty keeps the device idle for 8 ms, for
//! 2 ms if its process seeks far, unless the process is known to think longer than that, or the device has no seeks.
//!
//! Not modelled: classes real-time and idle, groups, and the merging of queues of processes that read the same file
//! together; virtual disks share no blocks.

use std::collections::BTreeMap;

use super::config::{CfqConfig, MIDDLE, PRIORITIES};
use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler, one_each};
use crate::types::{DeviceOp, Time};

const MS: u64 = 1_000_000;
/// Slices at middle priority (`slice_async`, `slice_sync`), nanoseconds.
const SLICE_NS: [u64; 2] = [40 * MS, 100 * MS];
/// A level of priority is this part of a slice.
const SLICE_SCALE: u64 = 5;
/// How long the device is kept for a process (`slice_idle`), and for one that seeks far.
const IDLE_NS: u64 = 8 * MS;
const IDLE_SEEKY_NS: u64 = 2 * MS;
/// After so long the oldest I/O goes first (`fifo_expire_async`, `fifo_expire_sync`), nanoseconds.
const EXPIRE_NS: [u64; 2] = [250 * MS, 125 * MS];
/// The longest way back, in bytes, and how much longer it counts (`back_seek_max`, `back_seek_penalty`).
const BACK_MOST: u64 = 16 << 20;
const BACK_PENALTY: u64 = 2;
/// I/Os of one queue in flight beside others, and alone (`quantum`).
const QUANTUM: u32 = 4;
/// I/Os of a slice of the shared queue at priority 0 less those of each level (`slice_async_rq`).
const ASYNC_IOS: u32 = 2;
/// A mean way longer than this, in bytes, is seeking.
const SEEKY: u64 = 8 * 1024 * 512;

/// A mean in which what is older counts less: an eighth of it is the newest.
#[derive(Debug, Default, Clone, Copy)]
struct Fading {
    samples: u64,
    total: u64,
}

impl Fading {
    fn add(&mut self, value: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * value) / 8;
    }

    /// Nothing before the third value.
    fn mean(self) -> Option<u64> {
        (self.samples > 80).then(|| (self.total + 128) / self.samples)
    }
}

/// What a process, or the shared write-back, asks of a device.
#[derive(Debug)]
struct Queue {
    waited_for: bool,
    priority: u8,
    /// By offset and arrival.
    ios: BTreeMap<(u64, u64), QueuedIo>,
    /// Offset and arrival time by arrival.
    arrivals: BTreeMap<u64, (u64, Time)>,
    /// Its place in turn, nanoseconds: the lowest is next.
    key: i128,
    /// What was left of its slice when that was taken from it; below zero what it took too much.
    left: i128,
    in_flight: u32,
    thinks: Fading,
    seeks: Fading,
    last_end: Time,
    last_offset: Option<u64>,
    /// Whether the device is kept for it.
    idles: bool,
}

impl Queue {
    fn new(waited_for: bool, priority: u8) -> Self {
        Self {
            waited_for,
            priority,
            ios: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            key: 0,
            left: 0,
            in_flight: 0,
            thinks: Fading::default(),
            seeks: Fading::default(),
            last_end: Time::ZERO,
            last_offset: None,
            idles: waited_for,
        }
    }

    fn slice_ns(&self) -> u64 {
        slice_ns(self.waited_for, self.priority)
    }

    fn is_seeky(&self) -> bool {
        self.seeks.mean().is_some_and(|bytes| bytes > SEEKY)
    }

    /// Learns from an I/O that arrives how long the process thinks and how far it seeks.
    fn learn(&mut self, now: Time, io: &QueuedIo) {
        self.thinks.add(now.since(self.last_end).min(2 * IDLE_NS));
        if let Some(last) = self.last_offset {
            let slack = if self.seeks.samples <= 60 { 1 << 30 } else { 64 << 20 };
            let most = 4 * self.seeks.mean().unwrap_or(0) + slack;
            self.seeks.add(io.offset_bytes.abs_diff(last).min(most));
        }
        self.last_offset = Some(io.offset_bytes + u64::from(io.len_bytes));
        if self.waited_for
            && let Some(mean) = self.thinks.mean()
        {
            self.idles = mean <= IDLE_NS;
        }
    }

    /// The I/O that is nearest to the head: upwards, or a short way back.
    fn nearest(&self, head: u64) -> Option<(u64, u64)> {
        let ahead = self.ios.range((head, 0)..).next().map(|(place, _)| *place);
        let near_back = |place: &(u64, u64)| head - place.0 <= BACK_MOST;
        let back = self.ios.range(..(head, 0)).next_back().map(|(place, _)| *place).filter(near_back);
        match (ahead, back) {
            (Some(ahead), Some(back)) if ahead.0 - head <= (head - back.0) * BACK_PENALTY => Some(ahead),
            (_, Some(back)) => Some(back),
            (Some(ahead), None) => Some(ahead),
            (None, None) => self.ios.keys().next().copied(),
        }
    }

    /// The oldest, if it has waited too long.
    fn expired(&self, now: Time) -> Option<(u64, u64)> {
        let (arrival, (offset, since)) = self.arrivals.first_key_value()?;
        (now.since(*since) >= EXPIRE_NS[usize::from(self.waited_for)]).then_some((*offset, *arrival))
    }
}

const fn slice_ns(waited_for: bool, priority: u8) -> u64 {
    let base = SLICE_NS[waited_for as usize];
    base / SLICE_SCALE * (SLICE_SCALE + MIDDLE as u64 - priority as u64)
}

/// Whose turn it is.
#[derive(Debug)]
struct Turn {
    queue: usize,
    /// Nothing before its first I/O has completed.
    ends: Option<Time>,
    /// Until when the device is kept for it.
    kept_until: Option<Time>,
    /// Whether the oldest I/O was looked at.
    looked: bool,
    dispatched: u32,
}

#[derive(Debug)]
struct DeviceQueues {
    /// Of the processes, and behind them the shared one.
    queues: Vec<Queue>,
    turn: Option<Turn>,
    /// Where the last I/O ended.
    head: u64,
    arrivals: u64,
    seeks: bool,
}

impl DeviceQueues {
    fn busy(&self) -> usize {
        self.queues.iter().filter(|queue| !queue.ios.is_empty()).count()
    }

    fn in_flight(&self, waited_for: bool) -> bool {
        self.queues.iter().any(|queue| queue.waited_for == waited_for && queue.in_flight > 0)
    }

    /// Puts a queue at the end of the turns: later the more there are and the shorter its slice is.
    fn put_back(&mut self, place: usize, now: Time) {
        let others = self.busy().saturating_sub(1) as u64;
        let queue = &mut self.queues[place];
        let offset = others * (slice_ns(true, 0) - queue.slice_ns());
        queue.key = i128::from(now.ns() + offset) - queue.left;
        queue.left = 0;
    }

    /// Ends the turn. What is left of the slice counts next time if it was `taken`.
    fn end_turn(&mut self, now: Time, taken: bool) {
        let Some(turn) = self.turn.take() else { return };
        if let (Some(ends), true) = (turn.ends, taken) {
            self.queues[turn.queue].left = i128::from(ends.ns()) - i128::from(now.ns());
        }
        if !self.queues[turn.queue].ios.is_empty() {
            self.put_back(turn.queue, now);
        }
    }

    /// Whether a queue with a new I/O goes before the one whose turn it is.
    fn preempts(&self, place: usize, io: &QueuedIo, now: Time) -> bool {
        let Some(turn) = &self.turn else { return false };
        let (new, active) = (&self.queues[place], &self.queues[turn.queue]);
        if new.waited_for && !active.waited_for {
            return true;
        }
        if turn.ends.is_some_and(|ends| now >= ends) {
            return true;
        }
        // As good as what the device is kept for.
        let near = active.seeks.mean().unwrap_or(SEEKY);
        new.waited_for && turn.kept_until.is_some() && io.offset_bytes.abs_diff(self.head) <= near
    }

    fn enqueue(&mut self, place: usize, now: Time, io: QueuedIo) {
        self.arrivals += 1;
        let queue = &mut self.queues[place];
        queue.learn(now, &io);
        let was_empty = queue.ios.is_empty();
        queue.ios.insert((io.offset_bytes, self.arrivals), io);
        queue.arrivals.insert(self.arrivals, (io.offset_bytes, now));
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.queue == place) {
            turn.kept_until = None;
            return;
        }
        if was_empty {
            self.put_back(place, now);
        }
        if self.preempts(place, &io, now) {
            self.end_turn(now, true);
            self.begin_turn(place);
        }
    }

    fn begin_turn(&mut self, queue: usize) {
        self.turn = Some(Turn { queue, ends: None, kept_until: None, looked: false, dispatched: 0 });
    }

    /// The queue that may dispatch now; ends turns that are over.
    fn select(&mut self, now: Time) -> Option<usize> {
        if let Some(turn) = &self.turn {
            let queue = &self.queues[turn.queue];
            let used = turn.ends.is_some_and(|ends| now >= ends);
            let kept = turn.kept_until.is_some_and(|until| now < until);
            let shared_out = !queue.waited_for
                && turn.dispatched >= 2 * ASYNC_IOS * (1 + u32::from(PRIORITIES - 1 - queue.priority))
                && self.busy() > 1;
            let stays = !used && !shared_out;
            if stays && !queue.ios.is_empty() {
                return Some(turn.queue);
            }
            if stays && (kept || (queue.in_flight > 0 && queue.idles && self.seeks)) {
                return None;
            }
            self.end_turn(now, false);
        }
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| !queue.ios.is_empty());
        let (next, _) = waiting.min_by_key(|(_, queue)| queue.key)?;
        self.begin_turn(next);
        Some(next)
    }

    fn may_dispatch(&self, place: usize) -> bool {
        let queue = &self.queues[place];
        if queue.waited_for {
            // Asynchronous I/O is finished before the device idles for a process.
            if queue.idles && self.seeks && self.in_flight(false) {
                return false;
            }
        } else if self.in_flight(true) {
            return false;
        }
        let most = if self.busy() > 1 { QUANTUM } else { 4 * QUANTUM };
        queue.in_flight < most
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        let place = self.select(now)?;
        if !self.may_dispatch(place) {
            return None;
        }
        let turn = self.turn.as_mut()?;
        let queue = &mut self.queues[place];
        let oldest = if turn.looked { None } else { queue.expired(now) };
        turn.looked = true;
        turn.dispatched += 1;
        let next = oldest.or_else(|| queue.nearest(self.head))?;
        let io = queue.ios.remove(&next)?;
        queue.arrivals.remove(&next.1);
        queue.in_flight += 1;
        self.head = io.offset_bytes + u64::from(io.len_bytes);
        Some(io)
    }

    fn completed(&mut self, place: usize, now: Time) {
        let seeks = self.seeks;
        let queue = &mut self.queues[place];
        queue.in_flight -= 1;
        queue.last_end = now;
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.queue == place) else { return };
        let ends = *turn.ends.get_or_insert(now.after(queue.slice_ns()));
        if now >= ends {
            self.end_turn(now, true);
            return;
        }
        let idles = seeks && queue.idles && queue.ios.is_empty() && queue.in_flight == 0;
        let in_time = queue.thinks.mean().is_none_or(|mean| now.after(mean) <= ends);
        if idles && in_time {
            turn.kept_until = Some(now.after(if queue.is_seeky() { IDLE_SEEKY_NS } else { IDLE_NS }));
        }
    }

    /// When the device is no longer kept, if others wait for that.
    fn deadline(&self) -> Option<Time> {
        let until = self.turn.as_ref()?.kept_until?;
        (self.busy() > 0).then_some(until)
    }
}

/// A set of queues for each device.
#[derive(Debug)]
pub struct Cfq {
    config: CfqConfig,
    devices: [DeviceQueues; 2],
    depth: Depth,
}

impl Cfq {
    /// `depth`: greatest number of outstanding I/Os of the slow and the fast device, at least 1.
    #[must_use]
    pub fn new(config: CfqConfig, depth: [u32; 2]) -> Self {
        let processes = config.processes.iter().max().map_or(0, |most| usize::from(*most) + 1);
        let devices = config.seeks.map(|seeks| {
            let own = (0..processes).map(|process| Queue::new(true, config.priority(process)));
            let queues = own.chain([Queue::new(false, MIDDLE)]).collect();
            DeviceQueues { queues, turn: None, head: 0, arrivals: 0, seeks }
        });
        Self { config, devices, depth: Depth::new(depth) }
    }

    /// The queue of an I/O: its process's, or the shared one.
    fn place(&self, io: &QueuedIo) -> usize {
        if self.config.buffered_writes && io.op == DeviceOp::Write {
            return self.devices[io.device.index()].queues.len() - 1;
        }
        usize::from(self.config.processes[io.disk.index()])
    }
}

impl Scheduler for Cfq {
    fn enqueue(&mut self, now: Time, io: QueuedIo) {
        let place = self.place(&io);
        self.devices[io.device.index()].enqueue(place, now, io);
    }

    fn completed(&mut self, now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
        let place = self.place(io);
        self.devices[io.device.index()].completed(place, now);
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        for device in DEVICES {
            if self.depth.has_room(device)
                && let Some(io) = self.devices[device.index()].pick(now)
            {
                self.depth.start(device);
                return Some(io);
            }
        }
        None
    }

    fn next_deadline(&self) -> Option<Time> {
        let room = |device: &&crate::types::Device| self.depth.has_room(**device);
        DEVICES.iter().filter(room).filter_map(|device| self.devices[device.index()].deadline()).min()
    }

    fn queued(&self) -> usize {
        self.devices.iter().flat_map(|device| &device.queues).map(|queue| queue.ios.len()).sum()
    }
}

impl Policy for CfqConfig {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        one_each(self.processes.len(), disks)
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(Cfq::new(self.clone(), depth))
    }
}
