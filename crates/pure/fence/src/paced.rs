//! A scheduler of our own: each disk has a virtual device for itself, the physical devices never idle while something
//! waits, and no answer is given before it is due.
//!
//! A disk's I/Os pass through its virtual device, which has a fixed share of the physical ones' speed and predicts
//! service times from this disk's own accesses. From it follows when each answer is due, alone as in company. The
//! physical devices serve whatever is there by due time, and by nearness among what is due at about the same time; an
//! answer that is ready early is held back until it is due. What a disk sees is its virtual device, as long as the
//! physical ones keep up, so that a neighbour's idleness gains it nothing and a neighbour's load costs it what comes too
//! late.
//!
//! Networks know this as rate-controlled service with jitter control (Verma, Zhang and Ferrari 1991; Zhang and Ferrari,
//! *Rate-controlled static-priority queueing*, 1993), with packet lengths in place of predictions. Against slots (
//! [VirtualFence 2013], section 6.3) a disk waits for no turn; the price is that finished answers are held, and that a batch of one disk's
//! accesses is interrupted for another's that is due.

use std::any::Any;
use std::collections::BTreeMap;

use crate::config_error::ConfigError;
use crate::predict::Predictors;
use crate::scheduler::{Parameters, Policy, QueuedIo, Scheduler};
use crate::types::{Account, Device, DeviceOp, DiskId, PacedAccount, Time};

/// The scheduler.
#[derive(Debug)]
pub struct Paced {
    config: PacedConfig,
    /// By disk; none for best effort.
    virtual_devices: Vec<Option<VirtualDevice>>,
    queues: [DueQueue; 2],
    best_effort: [DueQueue; 2],
    outstanding: [u32; 2],
    depth: [u32; 2],
    /// When answers to dispatched I/Os are due, by the I/O's slot.
    due: Vec<Time>,
    /// When the last predictable I/O came or completed, by device.
    active: [Time; 2],
    /// Where the last dispatched access ends, by device.
    head: [u64; 2],
    /// By disk.
    accounts: Vec<PacedAccount>,
}

const DEVICES: [Device; 2] = [Device::Slow, Device::Fast];

impl Paced {
    /// `config` must be valid for the disks; `depth` is the most I/Os outstanding, slow and fast.
    #[must_use]
    pub fn new(config: PacedConfig, depth: [u32; 2]) -> Self {
        let device = |class: &Class| match class {
            Class::Predictable(share) => Some(VirtualDevice::new(*share, config.reserve)),
            Class::BestEffort => None,
        };
        let queue = || [DueQueue::new(config.window_ns), DueQueue::new(0)];
        Self {
            virtual_devices: config.classes.iter().map(device).collect(),
            queues: queue(),
            best_effort: queue(),
            outstanding: [0; 2],
            depth,
            due: Vec::new(),
            active: [Time::ZERO; 2],
            head: [0; 2],
            accounts: vec![PacedAccount::default(); config.classes.len()],
            config,
        }
    }

    /// When best effort that waits for a device may be served, if nothing predictable comes before.
    fn quiet_from(&self, device: usize) -> Option<Time> {
        let guard_ns = self.config.guard_ns?[device];
        (!self.best_effort[device].is_empty()).then(|| self.active[device].after(guard_ns))
    }
}

impl Scheduler for Paced {
    fn enqueue(&mut self, now: Time, io: QueuedIo) {
        let device = io.device.index();
        let Some(own) = &mut self.virtual_devices[io.disk.index()] else {
            let queues =
                if self.config.guard_ns.is_some() { &mut self.best_effort } else { &mut self.queues };
            queues[device].push(now, io);
            return;
        };
        let served = own.serve(now, &io, &self.config.predict, self.config.burst_ns);
        let due = match self.config.due[device] {
            Due::AfterFinish(ns) => served.finish.after(ns),
            Due::AfterStart(ns) => served.start.after(ns),
        };
        self.active[device] = now;
        self.queues[device].push(due, io);
    }

    fn completed(&mut self, now: Time, io: &QueuedIo) {
        let device = io.device.index();
        self.outstanding[device] -= 1;
        if self.virtual_devices[io.disk.index()].is_some() {
            self.active[device] = now;
            let due = self.due.get(io.io.slot() as usize).copied().unwrap_or(now);
            let account = &mut self.accounts[io.disk.index()];
            account.ios += 1;
            account.held.add(due.since(now));
            account.late.add(now.since(due));
        }
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        for device in DEVICES.map(Device::index) {
            if self.outstanding[device] >= self.depth[device] {
                continue;
            }
            let head = self.head[device];
            let mut taken = self.queues[device].take(head);
            if taken.is_none() && self.quiet_from(device).is_some_and(|from| from <= now) {
                taken = self.best_effort[device].take(head);
            }
            let Some((due, io)) = taken else { continue };
            self.outstanding[device] += 1;
            self.head[device] = io.offset_bytes + u64::from(io.len_bytes);
            let slot = io.io.slot() as usize;
            if self.due.len() <= slot {
                self.due.resize(slot + 1, Time::ZERO);
            }
            // Best effort is answered as soon as it is done.
            let promised = self.virtual_devices[io.disk.index()].is_some();
            self.due[slot] = if promised { due } else { now };
            return Some(io);
        }
        None
    }

    fn release_at(&self, now: Time, io: &QueuedIo) -> Time {
        self.due.get(io.io.slot() as usize).copied().unwrap_or(now).max(now)
    }

    fn next_deadline(&self) -> Option<Time> {
        let free = |device: &usize| {
            self.outstanding[*device] < self.depth[*device] && self.queues[*device].is_empty()
        };
        DEVICES.map(Device::index).into_iter().filter(free).filter_map(|device| self.quiet_from(device)).min()
    }

    fn reconfigure(&mut self, config: &dyn Any) -> bool {
        let Some(paced) = config.downcast_ref::<PacedConfig>() else { return false };
        let others = PacedConfig { classes: self.config.classes.clone(), ..paced.clone() };
        let promised = |class: &Class| matches!(class, Class::Predictable(_));
        let same = paced.classes.iter().map(promised).eq(self.config.classes.iter().map(promised));
        if others != self.config || !same {
            return false;
        }
        for (own, class) in self.virtual_devices.iter_mut().zip(&paced.classes) {
            if let (Some(own), Class::Predictable(share)) = (own, class) {
                own.set_share(*share, paced.reserve);
            }
        }
        self.config.classes.clone_from(&paced.classes);
        true
    }

    fn queued(&self) -> usize {
        self.queues.iter().chain(&self.best_effort).map(DueQueue::len).sum()
    }

    fn account(&self, _now: Time, disk: DiskId) -> Option<Account> {
        self.virtual_devices.get(disk.index())?.as_ref()?;
        Some(Account::Paced(self.accounts[disk.index()]))
    }
}

impl Policy for PacedConfig {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        Self::validate(self, disks)
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(Paced::new(self.clone(), depth))
    }
}

/// Dedicated devices with a share of the physical ones' speed. They see one disk's I/Os only, so that what they
/// say is the same alone and in company.
#[derive(Debug, Clone)]
struct VirtualDevice {
    /// Virtual nanoseconds for a physical one.
    slowness: f64,
    /// When each is idle again, slow and fast.
    idle_from: [Time; 2],
    /// Where the disk's last slow access ends.
    head: u64,
}

/// When the virtual device begins and finishes an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Served {
    start: Time,
    finish: Time,
}

impl VirtualDevice {
    /// A device with `share` of the physical ones, of which an I/O takes `reserve` of what is predicted.
    fn new(share: f64, reserve: f64) -> Self {
        Self { slowness: reserve / share, idle_from: [Time::ZERO; 2], head: 0 }
    }

    /// From now on it has this share; what it has taken in stays as it is.
    fn set_share(&mut self, share: f64, reserve: f64) {
        self.slowness = reserve / share;
    }

    /// Takes an I/O in, in order of arrival. It may begin up to `burst_ns` before those ahead of it are finished.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    fn serve(&mut self, now: Time, io: &QueuedIo, predict: &Predictors, burst_ns: u64) -> Served {
        let device = io.device.index();
        let cost_ns = self.predicted_ns(io, predict) as f64 * self.slowness;
        let idle_from = self.idle_from[device];
        let start = now.max(Time::from_ns(idle_from.ns().saturating_sub(burst_ns)));
        let finish = now.max(idle_from).after(cost_ns as u64);
        self.idle_from[device] = finish;
        Served { start, finish }
    }

    fn predicted_ns(&mut self, io: &QueuedIo, predict: &Predictors) -> u64 {
        match (io.device, io.op) {
            (Device::Slow, DeviceOp::Read | DeviceOp::Write) => {
                let from = std::mem::replace(&mut self.head, io.offset_bytes + u64::from(io.len_bytes));
                predict.slow.access_ns(from, io.offset_bytes)
            }
            (Device::Slow, DeviceOp::Flush) => predict.slow.flush_ns(),
            (Device::Fast, DeviceOp::Read | DeviceOp::Write) => predict.fast.batch_ns(1),
            (Device::Fast, DeviceOp::Flush) | (_, DeviceOp::Discard) => 0,
        }
    }
}

/// A dedicated virtual device for each disk, and the order in which the physical ones serve.
#[derive(Debug, Clone, PartialEq)]
pub struct PacedConfig {
    /// By disk.
    pub classes: Vec<Class>,
    /// Service times are predicted with this.
    pub predict: Predictors,
    /// Time that is reserved for a predicted one, as a factor above 0. More than 1 keeps room for the head's way between
    /// partitions; less than 1 counts on what sorting over all disks saves.
    pub reserve: f64,
    /// When an answer is due on the slow and on the fast device.
    pub due: [Due; 2],
    /// A disk may run ahead of its virtual device by so much before it is held to its share, nanoseconds.
    pub burst_ns: u64,
    /// Of the slow device's I/Os that are due so soon after the first one, the nearest is served first,
    /// nanoseconds. 0 serves strictly by due time.
    pub window_ns: u64,
    /// How long a device, slow and fast, must have been without predictable I/Os before best effort is served,
    /// nanoseconds. Without a guard best effort takes its place among the others by arrival.
    pub guard_ns: Option<[u64; 2]>,
}

/// What a disk is promised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Class {
    /// A share of both devices' time, above 0; those of all disks add up to at most 1.
    Predictable(f64),
    /// What is left, without a promise (section 8).
    BestEffort,
}

/// When an answer is due. It is never given earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So many nanoseconds after the virtual device has finished it: the virtual clock.
    AfterFinish(u64),
    /// So many nanoseconds after the virtual device has begun it: a constant delay for a disk that keeps to its share.
    AfterStart(u64),
}

impl PacedConfig {
    /// What lowers the mean response time of all machines by a quarter at less than `VirtualFence`'s deviation, on the three
    /// workloads of [VirtualFence 2013] in virtual time (`docs/decisions/0051-paced-virtual-devices.md`). Equal shares where none is given.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let equal = 1.0 / parameters.disks.len() as f64;
        let shares = parameters.disks.iter().map(|disk| Class::Predictable(disk.share.unwrap_or(equal)));
        Self {
            classes: shares.collect(),
            predict: parameters.predict.clone(),
            reserve: 0.9,
            due: [Due::AfterFinish(20_000_000), Due::AfterFinish(200_000)],
            burst_ns: 0,
            window_ns: 80_000_000,
            guard_ns: None,
        }
    }

    /// Checks that shares are there for all and not given away twice.
    ///
    /// # Errors
    /// What does not fit.
    pub fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        if self.classes.len() != disks {
            return Err(ConfigError::SharesPerDisk { given: self.classes.len(), disks });
        }
        let mut sum = 0.0;
        for (disk, class) in self.classes.iter().enumerate() {
            if let Class::Predictable(share) = class {
                if !(share.is_finite() && *share > 0.0) {
                    return Err(ConfigError::ZeroShare { disk });
                }
                sum += share;
            }
        }
        // A sum of fractions may be off by its last digits.
        if sum > 1.0 + 1e-9 || !(self.reserve.is_finite() && self.reserve > 0.0) {
            return Err(ConfigError::SharesBeyondDevice);
        }
        Ok(())
    }
}

/// The most I/Os that are looked at for one that is due soon enough: bounds the work of one event.
const MOST_CANDIDATES: usize = 64;

/// The most bytes that follow on one another before due times are looked at again.
const MOST_RUN_BYTES: u64 = 1 << 20;

/// I/Os by due time, equal ones by arrival.
#[derive(Debug)]
struct DueQueue {
    by_due: BTreeMap<(Time, u64), QueuedIo>,
    /// Place and arrival to due time.
    by_place: BTreeMap<(u64, u64), Time>,
    arrived: u64,
    window_ns: u64,
    run_bytes: u64,
}

impl DueQueue {
    /// What is due up to `window_ns` after the first is served upwards by place from the head, then again from the
    /// lowest.
    const fn new(window_ns: u64) -> Self {
        Self { by_due: BTreeMap::new(), by_place: BTreeMap::new(), arrived: 0, window_ns, run_bytes: 0 }
    }

    fn push(&mut self, due: Time, io: QueuedIo) {
        self.arrived += 1;
        self.by_due.insert((due, self.arrived), io);
        self.by_place.insert((io.offset_bytes, self.arrived), due);
    }

    /// The next one, the head being at `head`, with when it is due. What follows on the last access goes on with it: a file of many blocks is
    /// one movement of the head.
    fn take(&mut self, head: u64) -> Option<(Time, QueuedIo)> {
        let (&(first, number), _) = self.by_due.first_key_value()?;
        let latest = first.after(self.window_ns);
        let run = self.run_bytes < MOST_RUN_BYTES;
        let follows = self.by_place.range((head, 0)..=(head, u64::MAX)).next().filter(|_| run);
        let soon = |(_, due): &(&(u64, u64), &Time)| **due <= latest;
        let above = || self.by_place.range((head, 0)..).take(MOST_CANDIDATES).find(soon);
        let below = || self.by_place.range(..(head, 0)).take(MOST_CANDIDATES).find(soon);
        let scanned = || if self.window_ns > 0 { above().or_else(below) } else { None };
        let key = match follows.or_else(scanned) {
            Some((&(_, number), &due)) => (due, number),
            None => (first, number),
        };
        let io = self.by_due.remove(&key)?;
        self.by_place.remove(&(io.offset_bytes, key.1));
        let len = u64::from(io.len_bytes);
        self.run_bytes = if io.offset_bytes == head { self.run_bytes + len } else { 0 };
        Some((key.0, io))
    }

    fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    fn len(&self) -> usize {
        self.by_due.len()
    }
}

#[cfg(test)]
#[path = "paced_tests.rs"]
mod tests;
