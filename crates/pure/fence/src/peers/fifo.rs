//! First in, first out: no scheduling at all (Linux' `noop`).

use std::collections::VecDeque;

use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler};
use crate::types::Time;

/// One queue a device.
#[derive(Debug)]
pub struct Fifo {
    queues: [VecDeque<QueuedIo>; 2],
    depth: Depth,
}

impl Fifo {
    /// `depth`: greatest number of outstanding I/Os of the slow and the fast device, at least 1.
    #[must_use]
    pub const fn new(depth: [u32; 2]) -> Self {
        Self { queues: [VecDeque::new(), VecDeque::new()], depth: Depth::new(depth) }
    }
}

impl Scheduler for Fifo {
    fn enqueue(&mut self, _now: Time, io: QueuedIo) {
        self.queues[io.device.index()].push_back(io);
    }

    fn completed(&mut self, _now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
    }

    fn pick(&mut self, _now: Time) -> Option<QueuedIo> {
        let device =
            DEVICES.into_iter().find(|d| self.depth.has_room(*d) && !self.queues[d.index()].is_empty())?;
        self.depth.start(device);
        self.queues[device.index()].pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

/// It needs to know nothing of the disks.
#[derive(Debug)]
pub(crate) struct FifoPolicy;

impl Policy for FifoPolicy {
    fn validate(&self, _disks: usize) -> Result<(), ConfigError> {
        Ok(())
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(Fifo::new(depth))
    }
}
