//! Fair queueing by sectors, as BFQ does it: a disk is served alone until its budget of sectors is used up or it has
//! nothing more to ask; the next is the eligible one that would finish first (Valente and Checconi, "High throughput disk
//! scheduling with fair bandwidth distribution", IEEE Transactions on Computers 59, 2010: B-WF2Q+).

use std::collections::VecDeque;

use super::config::FairConfig;
use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler, one_each};
use crate::types::Time;

/// Virtual time is kept in sectors times this.
const SCALE: u64 = 1 << 16;

#[derive(Debug, Default)]
struct Queue {
    ios: VecDeque<QueuedIo>,
    /// Virtual time at which it may next be served.
    start: u64,
}

#[derive(Debug)]
struct DeviceQueues {
    queues: Vec<Queue>,
    /// Virtual time: what a disk of all weight would have been given.
    time: u64,
    /// The disk being served, the sectors it has left, until when it is waited for.
    served: Option<usize>,
    left: u64,
    wait_until: Time,
}

/// One set of queues a device.
#[derive(Debug)]
pub struct FairQueue {
    config: FairConfig,
    devices: [DeviceQueues; 2],
    depth: Depth,
}

fn sectors(io: &QueuedIo) -> u64 {
    u64::from(io.len_bytes / 512).max(1)
}

impl FairQueue {
    /// A weight for each disk.
    #[must_use]
    pub fn new(config: FairConfig, depth: [u32; 2]) -> Self {
        let device = || DeviceQueues {
            queues: config.weights.iter().map(|_| Queue::default()).collect(),
            time: 0,
            served: None,
            left: 0,
            wait_until: Time::ZERO,
        };
        Self { devices: [device(), device()], depth: Depth::new(depth), config }
    }

    fn pick_from(&mut self, device: usize, now: Time) -> Option<QueuedIo> {
        let waits = self.waits(device, now);
        let queues = &mut self.devices[device];
        if let Some(served) = queues.served {
            match queues.queues[served].ios.front() {
                Some(io) if sectors(io) <= queues.left => return self.take(device, served),
                None if waits => return None,
                _ => queues.served = None,
            }
        }
        let least =
            queues.queues.iter().filter(|queue| !queue.ios.is_empty()).map(|queue| queue.start).min()?;
        queues.time = queues.time.max(least);
        let time = queues.time;
        let finish = |(disk, queue): &(usize, &Queue)| {
            queue.start + self.config.budget_sectors * SCALE / self.config.weights[*disk].max(1)
        };
        let eligible = queues.queues.iter().enumerate().filter(|(_, q)| !q.ios.is_empty() && q.start <= time);
        let (disk, queue) = eligible.min_by_key(finish)?;
        let first = queue.ios.front().map_or(0, sectors);
        queues.left = self.config.budget_sectors.max(first);
        queues.served = Some(disk);
        self.take(device, disk)
    }

    /// Whether the device is kept for the disk it serves, which asks for nothing.
    fn waits(&self, device: usize, now: Time) -> bool {
        device == 0
            && self.config.idle_ns > 0
            && (!self.depth.is_idle(DEVICES[0]) || now < self.devices[0].wait_until)
    }

    fn take(&mut self, device: usize, disk: usize) -> Option<QueuedIo> {
        let queues = &mut self.devices[device];
        let io = queues.queues[disk].ios.pop_front()?;
        let sectors = sectors(&io);
        let all: u64 = self.config.weights.iter().sum();
        queues.left = queues.left.saturating_sub(sectors);
        queues.queues[disk].start += sectors * SCALE / self.config.weights[disk].max(1);
        queues.time += sectors * SCALE / all.max(1);
        self.depth.start(io.device);
        Some(io)
    }
}

impl Scheduler for FairQueue {
    fn enqueue(&mut self, _now: Time, io: QueuedIo) {
        let device = &mut self.devices[io.device.index()];
        let queue = &mut device.queues[io.disk.index()];
        if queue.ios.is_empty() && device.served != Some(io.disk.index()) {
            queue.start = queue.start.max(device.time);
        }
        queue.ios.push_back(io);
    }

    fn completed(&mut self, now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
        let device = &mut self.devices[io.device.index()];
        if device.served == Some(io.disk.index()) && device.queues[io.disk.index()].ios.is_empty() {
            device.wait_until = now.after(self.config.idle_ns);
        }
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        for device in DEVICES {
            if self.depth.has_room(device)
                && let Some(io) = self.pick_from(device.index(), now)
            {
                return Some(io);
            }
        }
        None
    }

    fn next_deadline(&self) -> Option<Time> {
        let slow = &self.devices[0];
        let kept = slow.served.is_some_and(|disk| slow.queues[disk].ios.is_empty())
            && self.depth.is_idle(DEVICES[0]);
        let others = slow.queues.iter().any(|queue| !queue.ios.is_empty());
        (kept && others).then_some(slow.wait_until)
    }

    fn queued(&self) -> usize {
        self.devices.iter().flat_map(|device| &device.queues).map(|queue| queue.ios.len()).sum()
    }
}

impl Policy for FairConfig {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        one_each(self.weights.len(), disks)?;
        let zero = self.weights.iter().position(|&weight| weight == 0);
        zero.or((self.budget_sectors == 0).then_some(0))
            .map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(FairQueue::new(self.clone(), depth))
    }
}
