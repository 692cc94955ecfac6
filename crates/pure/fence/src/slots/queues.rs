//! What waits for each slot.

use std::collections::VecDeque;

use super::config::SlotOwner;
use crate::scheduler::QueuedIo;
use crate::types::{Device, DiskId};

/// One pair of queues a disk with slots of its own, one for all others together.
#[derive(Debug)]
pub(super) struct Queues {
    of_disk: Vec<usize>,
    of_slot: Vec<Option<usize>>,
    queues: Vec<[VecDeque<QueuedIo>; 2]>,
    total: usize,
}

impl Queues {
    pub(super) fn new(owners: &[SlotOwner], disks: usize) -> Self {
        let shared = disks;
        let mut of_disk = vec![shared; disks];
        let of_slot = owners
            .iter()
            .map(|owner| match owner {
                SlotOwner::Unassigned => None,
                SlotOwner::Shared => Some(shared),
                SlotOwner::Disk(disk) => {
                    of_disk[disk.index()] = disk.index();
                    Some(disk.index())
                }
            })
            .collect();
        let queues = (0..=disks).map(|_| [VecDeque::new(), VecDeque::new()]).collect();
        Self { of_disk, of_slot, queues, total: 0 }
    }

    /// Other owners: what is queued waits for these. Gives for each queue one whose accesses it goes on with.
    pub(super) fn reassign(&mut self, owners: &[SlotOwner]) -> Vec<usize> {
        let disks = self.of_disk.len();
        let mut before = std::mem::replace(self, Self::new(owners, disks));
        for io in before.queues.iter_mut().flatten().flat_map(|queue| queue.drain(..)) {
            self.push(io);
        }
        let mut from: Vec<usize> = (0..=disks).collect();
        for (&is, &was) in self.of_disk.iter().zip(&before.of_disk) {
            from[is] = was;
        }
        from
    }

    /// The queues that `disk` waits in.
    pub(super) fn of_disk(&self, disk: DiskId) -> Option<usize> {
        self.of_disk.get(disk.index()).copied()
    }

    /// The queues that slot `slot` serves.
    pub(super) fn of_slot(&self, slot: usize) -> Option<usize> {
        self.of_slot[slot]
    }

    pub(super) fn push(&mut self, io: QueuedIo) {
        self.total += 1;
        self.queues[self.of_disk[io.disk.index()]][io.device.index()].push_back(io);
    }

    pub(super) fn front(&self, queue: usize, device: Device) -> Option<&QueuedIo> {
        self.queues[queue][device.index()].front()
    }

    pub(super) fn pop(&mut self, queue: usize, device: Device) -> Option<QueuedIo> {
        let io = self.queues[queue][device.index()].pop_front()?;
        self.total -= 1;
        Some(io)
    }

    pub(super) fn len(&self, queue: usize, device: Device) -> usize {
        self.queues[queue][device.index()].len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(super) const fn total(&self) -> usize {
        self.total
    }
}
