//! First in, first out: what a device does when nobody cares (Linux' `noop`).

use std::collections::VecDeque;

use crate::scheduler::{QueuedIo, Scheduler};
use crate::types::Time;

/// One queue a device; at most `depth` I/Os of it outstanding.
#[derive(Debug)]
pub struct Fifo {
    queues: [VecDeque<QueuedIo>; 2],
    outstanding: [u32; 2],
    depth: [u32; 2],
}

impl Fifo {
    /// `depth`: greatest number of outstanding I/Os of the slow and the fast device, at least 1.
    #[must_use]
    pub fn new(depth: [u32; 2]) -> Self {
        Self { queues: [VecDeque::new(), VecDeque::new()], outstanding: [0; 2], depth }
    }
}

impl Scheduler for Fifo {
    fn enqueue(&mut self, _now: Time, io: QueuedIo) {
        self.queues[io.device.index()].push_back(io);
    }

    fn completed(&mut self, _now: Time, io: QueuedIo) {
        self.outstanding[io.device.index()] -= 1;
    }

    fn pick(&mut self, _now: Time) -> Option<QueuedIo> {
        for device in 0..2 {
            if self.outstanding[device] < self.depth[device]
                && let Some(io) = self.queues[device].pop_front()
            {
                self.outstanding[device] += 1;
                return Some(io);
            }
        }
        None
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}
