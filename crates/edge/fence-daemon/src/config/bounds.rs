//! Bounds on every number of a configuration that memory, time or arithmetic depends on.
//!
//! One table serves the file, what a running daemon is told, and the command line, so that what one accepts the others do.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::key_error::{KeyError, PathPart};
use super::{CacheTable, Config, DeviceTable, DiskTable, NbdTable, PoolTable, PredictTable, SchedulerTable};

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
    const fn top() -> Self {
        Self(Vec::new())
    }

    fn below(&self, part: PathPart) -> Self {
        Self([&self.0[..], &[part]].concat())
    }

    fn table(&self, name: &'static str) -> Self {
        self.below(PathPart::Table(name))
    }

    fn check<T: PartialOrd + Display>(
        &self,
        key: &'static str,
        value: impl Into<Option<T>>,
        bounds: &RangeInclusive<T>,
    ) -> Result<(), KeyError> {
        let Some(value) = value.into() else { return Ok(()) };
        within(value, bounds).map(drop).map_err(|says| KeyError { path: self.table(key).0, says })
    }

    fn devices(&self, slow: Option<&DeviceTable>, fast: Option<&DeviceTable>) -> Result<(), KeyError> {
        for (name, table) in [("slow", slow), ("fast", fast)] {
            self.table(name).check("depth", table.map(|table| table.depth), &DEPTH)?;
        }
        Ok(())
    }

    fn cache(&self, cache: &CacheTable) -> Result<(), KeyError> {
        self.table("cache").check("scratch_blocks", cache.scratch_blocks, &SCRATCH_BLOCKS)
    }

    fn scheduler(&self, table: &SchedulerTable) -> Result<(), KeyError> {
        let at = self.table("scheduler");
        at.check("slot_ms", table.slot_ms, &SLOT_MS)?;
        at.check("spare_slots", table.spare_slots, &SLOTS)?;
        at.check("max_batch", table.max_batch, &BATCH)?;
        table.predict.within_bounds(&at.table("predict"))
    }

    fn nbd(&self, nbd: &NbdTable) -> Result<(), KeyError> {
        let at = self.table("nbd");
        at.check("negotiation_s", nbd.negotiation_s, &SECONDS)?;
        at.check("stall_s", nbd.stall_s, &SECONDS)?;
        at.check("memory", nbd.memory.0, &NBD_MEMORY)
    }
}

impl Config {
    /// Finds the first number that is out of its bounds, in the pools too.
    pub(super) fn within_bounds(&self) -> Result<(), KeyError> {
        let at = At::top();
        at.devices(self.slow.as_ref(), self.fast.as_ref())?;
        at.cache(&self.cache)?;
        at.scheduler(&self.scheduler)?;
        at.table("limits").check("spin_us", self.limits.spin_us, &SPIN_US)?;
        self.nbd.iter().try_for_each(|nbd| at.nbd(nbd))?;
        for (name, pool) in &self.pools {
            pool.within_bounds(&at.below(PathPart::Pool(name.clone())))?;
        }
        for (place, disk) in self.disks.iter().enumerate() {
            disk.within_bounds(place)?;
        }
        if self.pools.is_empty() {
            return self.rotation_within_bounds(&self.scheduler, None);
        }
        let rotation = |(name, pool): (&String, &PoolTable)| {
            let scheduler = pool.scheduler.as_ref().unwrap_or(&self.scheduler);
            self.rotation_within_bounds(scheduler, Some(name))
        };
        self.pools.iter().try_for_each(rotation)
    }

    /// Of the disks of this pool.
    fn rotation_within_bounds(
        &self,
        scheduler: &SchedulerTable,
        pool: Option<&String>,
    ) -> Result<(), KeyError> {
        let mut slots = u64::from(scheduler.spare_slots);
        let disks = self.disks.iter().enumerate();
        for (place, disk) in disks.filter(|(_, disk)| pool.is_none() || disk.pool.as_ref() == pool) {
            slots += u64::from(disk.slots);
            if within(slots, &ROTATION).is_err() {
                let path = vec![PathPart::Disk(place, disk.name.clone()), PathPart::Table("slots")];
                let says = format!(
                    "{}: with it there are {slots} slots: use {} at most",
                    disk.slots,
                    ROTATION.end()
                );
                return Err(KeyError { path, says });
            }
        }
        Ok(())
    }

    /// Finds the first number of what was calibrated that is out of its bounds.
    pub(super) fn predictions_within_bounds(&self) -> Result<(), KeyError> {
        self.scheduler.predict.within_bounds(&At::top().table("scheduler").table("predict"))
    }
}

impl PoolTable {
    fn within_bounds(&self, at: &At) -> Result<(), KeyError> {
        at.devices(self.slow.as_ref(), self.fast.as_ref())?;
        self.cache.iter().try_for_each(|cache| at.cache(cache))?;
        self.scheduler.iter().try_for_each(|scheduler| at.scheduler(scheduler))?;
        self.nbd.iter().try_for_each(|nbd| at.nbd(nbd))
    }
}

impl PredictTable {
    /// Service times that can be added up.
    fn within_bounds(&self, at: &At) -> Result<(), KeyError> {
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
    fn within_bounds(&self, place: usize) -> Result<(), KeyError> {
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
