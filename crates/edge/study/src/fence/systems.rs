//! Ways of sharing one emulated hard disk and solid-state drive, to be compared in one run.

use std::fmt;

use virtbench_fence::catalogue::{PASS_THROUGH, Variant, served};
use virtbench_units::{format_duration_ns, parse_duration_ns};

use crate::setup::{Setup, SetupError};

/// One of them: a configuration of the guests' disks by a name. Its [`Display`](fmt::Display) is what
/// [`find`](Self::find) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    disks: Disks,
    /// Length of its time slots where they are not as long as usual, nanoseconds.
    slot_ns: Option<u64>,
}

/// What the guests' disks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disks {
    /// A row of the catalogue, on emulated devices.
    Listed(&'static Variant),
    /// As `--disk` has them: what shares the devices lies outside the daemon.
    Outside(&'static str),
}

/// Those in which the daemon lets everything through.
const OUTSIDE: [System; 4] = [
    System::outside(
        "none",
        "no fence: everything at once to the hard disk",
        "vhost-user-blk@fence,scheduler=pass-through",
    ),
    System::outside(
        "qemu-raw",
        "no fence: a block device of the host over the hard disk for each, opened raw by QEMU",
        "virtio-blk@fence,scheduler=pass-through,attach=host",
    ),
    System::outside(
        "qemu-throttle",
        "QEMU's throttle groups, nothing else",
        "virtio-blk@fence,scheduler=pass-through,throttle=on",
    ),
    System::outside(
        "blkio",
        "the host kernel's throttling of block devices, nothing else",
        "virtio-blk@fence,scheduler=pass-through,throttle=blkio",
    ),
];

impl System {
    /// All: first those in which the daemon lets everything through, then what else it serves, in the catalogue's order.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = served().filter(|variant| **variant != PASS_THROUGH);
        OUTSIDE.into_iter().chain(others.map(|variant| Self {
            name: variant.name,
            summary: variant.description,
            disks: Disks::Listed(variant),
            slot_ns: None,
        }))
    }

    /// The names of all, between commas.
    #[must_use]
    pub fn names() -> String {
        Self::all().map(|system| system.name).collect::<Vec<_>>().join(", ")
    }

    const fn outside(name: &'static str, summary: &'static str, setup: &'static str) -> Self {
        Self { name, summary, disks: Disks::Outside(setup), slot_ns: None }
    }

    /// Whether each machine has time slots of its own.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        matches!(self.disks, Disks::Listed(Variant { slot_ms: Some(_), .. }))
    }

    /// The one of that name; one with time slots also with their length, `VirtualFence:30ms`.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let (name, slot) = text.split_once(':').map_or((text, None), |(name, slot)| (name, Some(slot)));
        let system = Self::all().find(|system| system.name.eq_ignore_ascii_case(name))?;
        let Some(slot) = slot else { return Some(system) };
        let Disks::Listed(Variant { slot_ms: Some(_), .. }) = system.disks else { return None };
        let system = Self { slot_ns: Some(parse_duration_ns(slot).ok()?), ..system };
        system.setup().ok().map(|_| system)
    }

    /// Adapter and backing of its guests' disks.
    #[must_use]
    pub fn disk(&self) -> (String, String) {
        let setup = match self.disks {
            Disks::Outside(setup) => setup.to_owned(),
            Disks::Listed(variant) => {
                let fast = if variant.placement.is_cached() && !variant.fixed { ",fast=ssd" } else { "" };
                format!("vhost-user-blk@fence,scheduler={}{fast}", variant.name)
            }
        };
        let (adapter, backing) = setup.split_once('@').unwrap_or((&setup, "raw"));
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
        let folders: BTreeSet<String> = System::all().map(|system| system.folder()).collect();
        assert_eq!(folders.len(), System::all().count());
        let mut schedulers = BTreeSet::new();
        for system in System::all() {
            let setup = system.setup().unwrap_or_else(|error| panic!("{}: {error}", system.name));
            let Backing::Fence(options) = setup.backing else { panic!("{setup}") };
            assert_eq!(System::find(&system.name.to_uppercase()), Some(system));
            assert_eq!(options.is_cached(), options.scheduler.placement.is_cached(), "{setup}");
            schedulers.insert(options.scheduler.name);
        }
        let served: BTreeSet<&str> = served().map(|variant| variant.name).collect();
        assert_eq!(schedulers, served, "what is compared is what is served");
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
