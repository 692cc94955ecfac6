//! Ways of sharing one emulated hard disk and solid-state drive, to be compared in one run.

use std::fmt;

use virtbench_units::{format_duration_ns, parse_duration_ns};

use crate::backing::Backing;
use crate::setup::{Setup, SetupError};

/// One of them: a configuration of the guests' disks by a name. Its [`Display`](fmt::Display) is what
/// [`find`](Self::find) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    setup: &'static str,
    /// Length of its time slots where they are not as long as usual, nanoseconds.
    slot_ns: Option<u64>,
}

impl System {
    /// All, the unfenced one first, then the peers, then [VirtualFence 2013]'s Table 1, then our own.
    pub const ALL: [Self; 15] = [
        Self::new(
            "none",
            "no fence: everything at once to the hard disk",
            "vhost-user-blk@fence,scheduler=pass-through",
        ),
        Self::new(
            "qemu-raw",
            "no fence: a block device of the host over the hard disk for each, opened raw by QEMU",
            "virtio-blk@fence,scheduler=pass-through,attach=host",
        ),
        Self::new("fifo", "first in, first out", "vhost-user-blk@fence,scheduler=fifo"),
        Self::new(
            "qemu-throttle",
            "QEMU's throttle groups, nothing else",
            "virtio-blk@fence,scheduler=pass-through,throttle=on",
        ),
        Self::new(
            "blkio",
            "the host kernel's throttling of block devices, nothing else",
            "virtio-blk@fence,scheduler=pass-through,throttle=blkio",
        ),
        Self::new("token-bucket", "a cap for each", "vhost-user-blk@fence,scheduler=token-bucket"),
        Self::new("mclock", "mClock, reservation = limit", "vhost-user-blk@fence,scheduler=mclock"),
        Self::new("fair-queue", "budgets of sectors, as BFQ", "vhost-user-blk@fence,scheduler=fair-queue"),
        Self::new("HDD+NWC", "Table 1: slots on the hard disk", "vhost-user-blk@fence,scheduler=HDD+NWC"),
        Self::new(
            "SSD+NWC",
            "Table 1: slots on the solid-state drive",
            "vhost-user-blk@fence,scheduler=SSD+NWC",
        ),
        Self::new("Hybrid/Shared", "Table 1: one cache", "vhost-user-blk@fence,scheduler=Hybrid/Shared"),
        Self::new(
            "Hybrid/Shared+NWC",
            "Table 1: one cache, slots",
            "vhost-user-blk@fence,scheduler=Hybrid/Shared+NWC",
        ),
        Self::new(
            "Hybrid/Partitioned",
            "Table 1: a cache for each",
            "vhost-user-blk@fence,scheduler=Hybrid/Partitioned",
        ),
        Self::new(
            "VirtualFence",
            "Table 1: a cache for each, slots",
            "vhost-user-blk@fence,scheduler=VirtualFence",
        ),
        Self::new("paced", "our own: virtual devices", "vhost-user-blk@fence,scheduler=paced,fast=ssd"),
    ];

    const fn new(name: &'static str, summary: &'static str, setup: &'static str) -> Self {
        Self { name, summary, setup, slot_ns: None }
    }

    /// The one of that name; one with time slots also with their length, `VirtualFence:30ms`.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let (name, slot) = text.split_once(':').map_or((text, None), |(name, slot)| (name, Some(slot)));
        let system = Self::ALL.into_iter().find(|system| system.name.eq_ignore_ascii_case(name))?;
        let Some(slot) = slot else { return Some(system) };
        let system = Self { slot_ns: Some(parse_duration_ns(slot).ok()?), ..system };
        let has_slots =
            matches!(system.setup().ok()?.backing, Backing::Fence(of) if of.scheduler.has_slots());
        has_slots.then_some(system)
    }

    /// Adapter and backing of its guests' disks.
    #[must_use]
    pub fn disk(&self) -> (String, String) {
        let (adapter, backing) = self.setup.split_once('@').unwrap_or((self.setup, "raw"));
        let slot = self.slot_ns.map_or_else(String::new, |slot_ns| format!(",slot={}us", slot_ns / 1000));
        (adapter.to_owned(), format!("{backing}{slot}"))
    }

    /// Its guests' disks.
    ///
    /// # Errors
    /// Slots are too short or too long; none without.
    pub fn setup(&self) -> Result<Setup, SetupError> {
        let (adapter, backing) = self.disk();
        Setup::parse(&format!("{adapter}@{backing}"))
    }

    /// Its name as a folder's.
    #[must_use]
    pub fn folder(&self) -> String {
        self.to_string().to_ascii_lowercase().replace(['/', '+', ':'], "-")
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.slot_ns.map_or(Ok(()), |slot_ns| write!(f, ":{}", format_duration_ns(slot_ns)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Backing;

    #[test]
    fn each_is_a_configuration_and_has_a_folder_of_its_own() {
        let folders: BTreeSet<String> = System::ALL.iter().map(System::folder).collect();
        assert_eq!(folders.len(), System::ALL.len());
        for system in System::ALL {
            let setup = system.setup().unwrap_or_else(|error| panic!("{}: {error}", system.name));
            let Backing::Fence(options) = setup.backing else { panic!("{setup}") };
            assert_eq!(System::find(&system.name.to_uppercase()), Some(system));
            // Only those of Table 1 with caches, and ours, have two devices.
            assert_eq!(
                options.is_cached(),
                system.name.starts_with(['H', 'V', 'p']) && system.name != "HDD+NWC",
                "{setup}"
            );
        }
    }

    #[test]
    fn those_with_slots_have_them_of_any_length() {
        let system = System::find("virtualfence:30ms").unwrap();
        assert_eq!(
            (system.to_string(), system.folder()),
            ("VirtualFence:30ms".into(), "virtualfence-30ms".into())
        );
        assert_eq!(System::find(&system.to_string()), Some(system));
        let Backing::Fence(options) = system.setup().unwrap().backing else { panic!() };
        assert_eq!(options.slot_us, 30_000);
        for wrong in [
            "none:30ms",
            "paced:30ms",
            "VirtualFence:0",
            "VirtualFence:1h",
            "VirtualFence:",
            "VirtualFence:30",
        ] {
            assert_eq!(System::find(wrong), None, "{wrong}");
        }
    }
}
