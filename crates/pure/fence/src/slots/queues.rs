//! What waits for each slot.

use std::collections::VecDeque;

use crate::config_error::ConfigError;
use crate::predict::{Predictors, SlowPredictor};
use crate::scheduler::{Parameters, QueuedIo};
use crate::types::{Device, DeviceOp, DiskId};

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

/// Accesses in ascending order of offset, as a scan serves them, and what they are predicted to take.
#[derive(Debug, Default)]
pub(super) struct SlowBatch {
    sorted: Vec<QueuedIo>,
    /// Flushes and discards; they move no head.
    unplaced: Vec<QueuedIo>,
    head: u64,
    predicted_ns: u64,
}

fn end(io: &QueuedIo) -> u64 {
    io.offset_bytes + u64::from(io.len_bytes)
}

impl SlowBatch {
    /// An empty batch, the head at byte `head`.
    pub(super) fn begin(&mut self, head: u64) {
        self.sorted.clear();
        self.unplaced.clear();
        self.head = head;
        self.predicted_ns = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len() + self.unplaced.len()
    }

    /// What it is predicted to take.
    pub(super) const fn predicted_ns(&self) -> u64 {
        self.predicted_ns
    }

    /// Takes `io` in if the batch is then still predicted to take at most `limit_ns`.
    pub(super) fn add(&mut self, predict: &SlowPredictor, io: QueuedIo, limit_ns: u64) -> bool {
        let (place, more, less) = match io.op {
            DeviceOp::Read | DeviceOp::Write => {
                let place = self.sorted.partition_point(|other| other.offset_bytes <= io.offset_bytes);
                let before = place.checked_sub(1).map_or(self.head, |before| end(&self.sorted[before]));
                let to = predict.access_ns(before, io.offset_bytes);
                match self.sorted.get(place) {
                    None => (Some(place), to, 0),
                    Some(next) => {
                        let on = predict.access_ns(end(&io), next.offset_bytes);
                        (Some(place), to + on, predict.access_ns(before, next.offset_bytes))
                    }
                }
            }
            DeviceOp::Flush => (None, predict.flush_ns(), 0),
            DeviceOp::Discard => (None, 0, 0),
        };
        let predicted_ns = (self.predicted_ns + more).saturating_sub(less);
        if predicted_ns > limit_ns {
            return false;
        }
        self.predicted_ns = predicted_ns;
        match place {
            Some(place) => self.sorted.insert(place, io),
            None => self.unplaced.push(io),
        }
        true
    }

    /// Hands the batch over in its order; returns where the head will be.
    pub(super) fn finish(&mut self, staged: &mut VecDeque<QueuedIo>) -> u64 {
        let head = self.sorted.last().map_or(self.head, end);
        staged.extend(self.sorted.drain(..));
        staged.extend(self.unplaced.drain(..));
        head
    }
}

/// A rotation at most: what slots are owed is counted in signed nanoseconds.
const MOST_ROTATION_NS: u64 = 1 << 62;

/// A rotation of time slots.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotsConfig {
    /// The slots in their order; a disk may have several.
    pub owners: Vec<SlotOwner>,
    /// Length of a slot in nanoseconds.
    pub slot_ns: u64,
    /// What is taken to fit.
    pub predict: Predictors,
    /// Most I/Os in a batch: bounds the work of one event.
    pub max_batch: u32,
}

/// Who may use a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotOwner {
    /// No disk yet: it passes unused.
    Unassigned,
    /// One disk alone.
    Disk(DiskId),
    /// All disks that have no slot of their own, first come first served: the best-effort class of section 8.
    Shared,
}

impl SlotsConfig {
    /// Slots in turn, those of one disk as far apart as rounds allow, spare ones last.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // at most 65535 disks
    pub fn new(parameters: &Parameters) -> Self {
        let disks = &parameters.disks;
        let rounds = disks.iter().map(|disk| disk.slots).max().unwrap_or(0);
        let round = |round: u32| {
            let owners = disks.iter().enumerate().filter(move |(_, disk)| disk.slots > round);
            owners.map(|(disk, _)| SlotOwner::Disk(DiskId(disk as u16)))
        };
        let spare = (0..parameters.spare_slots).map(|_| SlotOwner::Unassigned);
        Self {
            owners: (0..rounds).flat_map(round).chain(spare).collect(),
            slot_ns: parameters.slot_ns,
            predict: parameters.predict.clone(),
            max_batch: parameters.max_batch,
        }
    }

    /// Checks that every disk is served and that slots can serve anything.
    ///
    /// # Errors
    /// What does not fit.
    pub fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        if self.owners.is_empty() || self.slot_ns == 0 || self.max_batch == 0 {
            return Err(ConfigError::NoSlots);
        }
        let slots = self.owners.len();
        if self.slot_ns.checked_mul(slots as u64).is_none_or(|ns| ns > MOST_ROTATION_NS) {
            return Err(ConfigError::RotationTooLong { slots, slot_ns: self.slot_ns });
        }
        let needs_ns = self.predict.fast.batch_ns(1);
        if needs_ns > self.slot_ns {
            return Err(ConfigError::SlotTooShort { slot_ns: self.slot_ns, needs_ns });
        }
        for (slot, owner) in self.owners.iter().enumerate() {
            if let SlotOwner::Disk(disk) = owner
                && disk.index() >= disks
            {
                return Err(ConfigError::SlotOwnerUnknown { slot, disk: disk.index() });
            }
        }
        let shared = self.owners.contains(&SlotOwner::Shared);
        let served = |&disk: &usize| {
            shared || self.owners.iter().any(|o| matches!(o, SlotOwner::Disk(d) if d.index() == disk))
        };
        match (0..disks).find(|disk| !served(disk)) {
            Some(disk) => Err(ConfigError::DiskWithoutSlot { disk, slots: self.owners.len() }),
            None => Ok(()),
        }
    }
}
