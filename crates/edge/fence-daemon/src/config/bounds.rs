//! Bounds on every number of a configuration that memory, time or arithmetic depends on.
//!
//! One table serves the file, what a running daemon is told, and the command line, so that what one accepts the others do.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use toml_edit::{Document, Item};

use super::{Config, DeviceTable, DiskTable, PredictTable};

/// Slots of one disk, and spare ones.
pub const SLOTS: RangeInclusive<u32> = 0..=1024;
/// Slots of a rotation.
pub const ROTATION: RangeInclusive<u64> = 0..=16_384;
/// Length of a slot, milliseconds: a disk waits for the slots of all others, and guests give up after 30 s or so.
pub const SLOT_MS: RangeInclusive<f64> = 0.001..=10_000.0;
/// Part of the devices' time: with less, one I/O of a hard disk would be due after more than 10 s.
pub const SHARE: RangeInclusive<f64> = 0.001..=1.0;
const DEPTH: RangeInclusive<u32> = 1..=65_536;
const BATCH: RangeInclusive<u32> = 1..=65_536;
/// Blocks of 4 KiB of memory: 256 MiB.
const SCRATCH_BLOCKS: RangeInclusive<u32> = 1..=65_536;
const SPIN_US: RangeInclusive<u64> = 0..=100_000;
/// Service times, in milliseconds.
const SERVICE_MS: RangeInclusive<f64> = 0.0..=60_000.0;
const SERVICE_US: RangeInclusive<f64> = 0.0..=60e6;
const RATE: RangeInclusive<u64> = 1..=1_000_000_000;
const RESERVATION: RangeInclusive<u64> = 0..=1_000_000_000;
const BYTES_PER_S: RangeInclusive<u64> = 1..=1 << 50;
const WEIGHT: RangeInclusive<u64> = 1..=1_000_000;
const DISK_BYTES: RangeInclusive<u64> = 4096..=1 << 60;
const SECONDS: RangeInclusive<u64> = 1..=86_400;
const NBD_MEMORY: RangeInclusive<u64> = 64 << 20..=1 << 50;

/// A number that is not within its bounds. NaN is within none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutOfBounds {
    /// The tables that lead to it, a disk by its place, and the key.
    path: Vec<PathPart>,
    says: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPart {
    Table(&'static str),
    Disk(usize, String),
}

impl Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.iter().enumerate() {
            match step {
                PathPart::Disk(_, name) => write!(f, "disk {name}: ")?,
                PathPart::Table(name) if place + 1 == self.path.len() => write!(f, "{name} ")?,
                PathPart::Table(name) => write!(f, "{name}.")?,
            }
        }
        f.write_str(&self.says)
    }
}

impl OutOfBounds {
    /// With the line where it stands in the file that it came from.
    pub(super) fn in_text(&self, text: &str) -> String {
        let line = self.span(text).map(|start| text[..start].matches('\n').count() + 1);
        line.map_or_else(|| self.to_string(), |line| format!("line {line}: {self}"))
    }

    fn span(&self, text: &str) -> Option<usize> {
        let document = Document::parse(text).ok()?;
        let mut item: &Item = document.as_item();
        for step in &self.path {
            item = match step {
                PathPart::Table(name) => item.get(name)?,
                PathPart::Disk(place, _) => item.get("disk")?.get(*place)?,
            };
        }
        Some(item.span()?.start)
    }
}

/// Says so if a number is out of bounds.
///
/// # Errors
/// The value and its bounds.
pub fn within<T: PartialOrd + Display>(value: T, bounds: &RangeInclusive<T>) -> Result<T, String> {
    if bounds.contains(&value) {
        Ok(value)
    } else {
        Err(format!("{value}: use {} to {}", bounds.start(), bounds.end()))
    }
}

/// A place in a configuration whose numbers are looked at.
struct At(Vec<PathPart>);

impl At {
    fn table(names: &[&'static str]) -> Self {
        Self(names.iter().copied().map(PathPart::Table).collect())
    }

    fn check<T: PartialOrd + Display>(
        &self,
        key: &'static str,
        value: impl Into<Option<T>>,
        bounds: &RangeInclusive<T>,
    ) -> Result<(), OutOfBounds> {
        let Some(value) = value.into() else { return Ok(()) };
        let wrong = |says| OutOfBounds { path: [&self.0[..], &[PathPart::Table(key)]].concat(), says };
        within(value, bounds).map(drop).map_err(wrong)
    }
}

impl Config {
    /// Finds the first number that is out of its bounds.
    pub(super) fn within_bounds(&self) -> Result<(), OutOfBounds> {
        for (name, table) in [("slow", &self.slow), ("fast", &self.fast)] {
            let depth = table.as_ref().map(|table: &DeviceTable| table.depth);
            At::table(&[name]).check("depth", depth, &DEPTH)?;
        }
        At::table(&["cache"]).check("scratch_blocks", self.cache.scratch_blocks, &SCRATCH_BLOCKS)?;
        let scheduler = At::table(&["scheduler"]);
        scheduler.check("slot_ms", self.scheduler.slot_ms, &SLOT_MS)?;
        scheduler.check("spare_slots", self.scheduler.spare_slots, &SLOTS)?;
        scheduler.check("max_batch", self.scheduler.max_batch, &BATCH)?;
        self.scheduler.predict.within_bounds()?;
        At::table(&["limits"]).check("spin_us", self.limits.spin_us, &SPIN_US)?;
        if let Some(nbd) = &self.nbd {
            let at = At::table(&["nbd"]);
            at.check("negotiation_s", nbd.negotiation_s, &SECONDS)?;
            at.check("stall_s", nbd.stall_s, &SECONDS)?;
            at.check("memory", nbd.memory.0, &NBD_MEMORY)?;
        }
        for (place, disk) in self.disks.iter().enumerate() {
            disk.within_bounds(place)?;
        }
        self.rotation_within_bounds()
    }

    fn rotation_within_bounds(&self) -> Result<(), OutOfBounds> {
        let mut slots = u64::from(self.scheduler.spare_slots);
        for (place, disk) in self.disks.iter().enumerate() {
            slots += u64::from(disk.slots);
            if within(slots, &ROTATION).is_err() {
                let path = vec![PathPart::Disk(place, disk.name.clone()), PathPart::Table("slots")];
                let says = format!(
                    "{}: with it there are {slots} slots: use {} at most",
                    disk.slots,
                    ROTATION.end()
                );
                return Err(OutOfBounds { path, says });
            }
        }
        Ok(())
    }
}

impl PredictTable {
    /// Service times that can be added up.
    pub(super) fn within_bounds(&self) -> Result<(), OutOfBounds> {
        let at = At::table(&["scheduler", "predict"]);
        let knots = self.slow_knots.iter().map(|knot| knot.1);
        for ms in knots {
            at.check("slow_knots", ms, &SERVICE_MS)?;
        }
        at.check("slow_flush_ms", self.slow_flush_ms, &SERVICE_MS)?;
        at.check("fast_base_us", self.fast_base_us, &SERVICE_US)?;
        at.check("fast_per_io_us", self.fast_per_io_us, &SERVICE_US)
    }
}

impl DiskTable {
    fn within_bounds(&self, place: usize) -> Result<(), OutOfBounds> {
        let at = At(vec![PathPart::Disk(place, self.name.clone())]);
        // A size of no whole blocks has a message of its own.
        at.check("size", self.size.0.max(*DISK_BYTES.start()), &DISK_BYTES)?;
        at.check("bypass", self.bypass.map(|size| size.0), &DISK_BYTES)?;
        at.check("slots", self.slots, &SLOTS)?;
        at.check("share", self.share, &SHARE)?;
        at.check("iops", self.iops, &RATE)?;
        at.check("bytes_per_s", self.bytes_per_s.map(|size| size.0), &BYTES_PER_S)?;
        at.check("reservation_iops", self.reservation_iops, &RESERVATION)?;
        at.check("limit_iops", self.limit_iops, &RATE)?;
        at.check("weight", self.weight, &WEIGHT)
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
