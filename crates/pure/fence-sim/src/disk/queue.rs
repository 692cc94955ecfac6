//! What a device holds, and in which order it serves it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use virtbench_fence::DeviceOp;

/// A command as a device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<T> {
    /// Given back on completion.
    pub tag: T,
    /// First byte on the device.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// What it does.
    pub op: DeviceOp,
}

/// In which order a device serves what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they came.
    Arrival,
    /// Upwards by address from the head, then again from the lowest (C-LOOK): "the disk scheduling
    /// algorithm includes some form of scanning" ([VirtualFence 2013], section 6.3).
    Scan,
}

/// Commands that wait for a device. The caller bounds it; it is searched linearly.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    order: Order,
    waiting: VecDeque<Command<T>>,
}

impl<T> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, waiting: VecDeque::with_capacity(64) }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, command: Command<T>) {
        self.waiting.push_back(command);
    }

    /// Takes the one to serve next, the head being at `head`.
    #[inline]
    pub fn pop(&mut self, head: u64) -> Option<Command<T>> {
        if self.order == Order::Arrival || self.waiting.len() <= 1 {
            return self.waiting.pop_front();
        }
        // Those ahead of the head come first, each half by address; equal addresses as they came.
        let key = |(_, command): &(usize, &Command<T>)| (command.offset < head, command.offset);
        let (next, _) = self.waiting.iter().enumerate().min_by_key(key)?;
        self.waiting.remove(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(order: Order, head: u64, offsets: &[u64]) -> Vec<u64> {
        let mut queue = Queue::new(order);
        for offset in offsets {
            queue.push(Command { tag: (), offset: *offset, len: 1, op: DeviceOp::Read });
        }
        let mut head = head;
        std::iter::from_fn(|| {
            let command = queue.pop(head)?;
            head = command.offset + 1;
            Some(command.offset)
        })
        .collect()
    }

    #[test]
    fn a_scan_goes_up_and_begins_again_below() {
        assert_eq!(served(Order::Scan, 50, &[10, 60, 55, 90, 20]), [55, 60, 90, 10, 20]);
    }

    #[test]
    fn arrival_order_is_kept() {
        assert_eq!(served(Order::Arrival, 50, &[10, 60, 55]), [10, 60, 55]);
    }
}
