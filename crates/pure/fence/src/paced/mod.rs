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

mod clock;
mod config;
mod queue;

pub use config::{Class, Due, PacedConfig};

use std::any::Any;

use crate::account::{Account, PacedAccount};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler};
use crate::types::{Device, DiskId, Time};
use clock::VirtualDevice;
use queue::DueQueue;

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

#[cfg(test)]
#[path = "paced_tests.rs"]
mod tests;
