//! The circular elevator (C-SCAN): ascending offsets, then back to the lowest.
//!
//! What arrives ahead of the head is served in the same sweep; what arrives at it or behind waits for the next. A sweep
//! ends at the end of the device at the latest, so nothing starves.

use std::collections::BTreeMap;

use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler};
use crate::types::Time;

/// Each device's queue in the order of offsets; an ordered map, because the next at or behind a place is asked for.
#[derive(Debug)]
pub struct Elevator {
    queues: [BTreeMap<(u64, u64), QueuedIo>; 2],
    /// The lowest offset that the sweep may still serve.
    sweep: [u64; 2],
    arrivals: u64,
    depth: Depth,
}

impl Elevator {
    /// `depth`: greatest number of outstanding I/Os of the slow and the fast device, at least 1.
    #[must_use]
    pub const fn new(depth: [u32; 2]) -> Self {
        Self {
            queues: [BTreeMap::new(), BTreeMap::new()],
            sweep: [0; 2],
            arrivals: 0,
            depth: Depth::new(depth),
        }
    }
}

impl Scheduler for Elevator {
    fn enqueue(&mut self, _now: Time, io: QueuedIo) {
        self.arrivals += 1;
        self.queues[io.device.index()].insert((io.offset_bytes, self.arrivals), io);
    }

    fn completed(&mut self, _now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
    }

    fn pick(&mut self, _now: Time) -> Option<QueuedIo> {
        let device =
            DEVICES.into_iter().find(|d| self.depth.has_room(*d) && !self.queues[d.index()].is_empty())?;
        let queue = &mut self.queues[device.index()];
        let ahead = queue.range((self.sweep[device.index()], 0)..).next();
        let key = *ahead.or_else(|| queue.iter().next())?.0;
        self.sweep[device.index()] = key.0 + 1;
        self.depth.start(device);
        queue.remove(&key)
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn queued(&self) -> usize {
        self.queues.iter().map(BTreeMap::len).sum()
    }
}

/// It needs to know nothing of the disks.
#[derive(Debug)]
pub(crate) struct ElevatorPolicy;

impl Policy for ElevatorPolicy {
    fn validate(&self, _disks: usize) -> Result<(), ConfigError> {
        Ok(())
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(Elevator::new(depth))
    }
}
