//! Who owns which slot.

use crate::config_error::ConfigError;
use crate::parameters::Parameters;
use crate::predict::Predictors;
use crate::types::DiskId;

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
