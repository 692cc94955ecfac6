//! A cap on each disk's I/O rate and bandwidth by token buckets, as QEMU's `throttling.*` and cgroups' `io.max` set it.
//!
//! Each bucket is kept as the time at which it will be full again (the generic cell rate algorithm), so that nothing has
//! to be refilled.

use std::collections::VecDeque;

use super::config::Cap;
use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler, one_each};
use crate::types::{Account, Device, DiskId, Time, TokenAccount};

#[derive(Debug)]
struct Disk {
    cap: Cap,
    queues: [VecDeque<QueuedIo>; 2],
    /// When the buckets will be full again.
    ios_full: Time,
    bytes_full: Time,
}

impl Disk {
    /// When the next I/O may go.
    fn eligible(&self) -> Time {
        Time::from_ns(self.ios_full.max(self.bytes_full).ns().saturating_sub(self.cap.burst_ns))
    }

    /// How much of a rate is saved up.
    fn saved_ns(&self, now: Time, full: Time) -> i64 {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        signed(self.cap.burst_ns) - signed(full.since(now))
    }

    fn charge(&mut self, now: Time, io: &QueuedIo) {
        let io_ns = Cap::cost_ns(self.cap.iops, 1);
        let bytes_ns = Cap::cost_ns(self.cap.bytes_per_s, u64::from(io.len_bytes));
        self.ios_full = self.ios_full.max(now).after(io_ns);
        self.bytes_full = self.bytes_full.max(now).after(bytes_ns);
    }
}

/// Disks under their caps take turns.
#[derive(Debug)]
pub struct TokenBucket {
    disks: Vec<Disk>,
    turn: usize,
    depth: Depth,
}

impl TokenBucket {
    /// One cap a disk.
    #[must_use]
    pub fn new(caps: &[Cap], depth: [u32; 2]) -> Self {
        let disk = |&cap: &Cap| Disk {
            cap,
            queues: [VecDeque::new(), VecDeque::new()],
            ios_full: Time::ZERO,
            bytes_full: Time::ZERO,
        };
        Self { disks: caps.iter().map(disk).collect(), turn: 0, depth: Depth::new(depth) }
    }

    fn ready(&self, disk: &Disk) -> Option<Device> {
        DEVICES.into_iter().find(|d| self.depth.has_room(*d) && !disk.queues[d.index()].is_empty())
    }
}

impl Scheduler for TokenBucket {
    fn enqueue(&mut self, _now: Time, io: QueuedIo) {
        self.disks[io.disk.index()].queues[io.device.index()].push_back(io);
    }

    fn completed(&mut self, _now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        let count = self.disks.len();
        let order = (0..count).map(|step| (self.turn + step) % count);
        let (index, device) = order
            .filter(|&index| self.disks[index].eligible() <= now)
            .find_map(|index| self.ready(&self.disks[index]).map(|device| (index, device)))?;
        self.turn = (index + 1) % count;
        self.depth.start(device);
        let io = self.disks[index].queues[device.index()].pop_front()?;
        self.disks[index].charge(now, &io);
        Some(io)
    }

    fn next_deadline(&self) -> Option<Time> {
        self.disks.iter().filter(|disk| self.ready(disk).is_some()).map(Disk::eligible).min()
    }

    fn queued(&self) -> usize {
        self.disks.iter().flat_map(|disk| &disk.queues).map(VecDeque::len).sum()
    }

    fn account(&self, now: Time, disk: DiskId) -> Option<Account> {
        let disk = self.disks.get(disk.index())?;
        let ios_ns = disk.cap.iops.map(|_| disk.saved_ns(now, disk.ios_full));
        let bytes_ns = disk.cap.bytes_per_s.map(|_| disk.saved_ns(now, disk.bytes_full));
        Some(Account::Tokens(TokenAccount { ios_ns, bytes_ns }))
    }
}

impl Policy for Vec<Cap> {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        let zero = |cap: &Cap| cap.iops == Some(0) || cap.bytes_per_s == Some(0);
        one_each(self.len(), disks)?;
        self.iter().position(zero).map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(TokenBucket::new(self, depth))
    }
}
