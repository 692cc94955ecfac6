//! What a daemon changes of itself while it serves: a disk grows, slots and shares are given anew; `live_members` has the rest.
//!
//! This runs beside the scheduler's thread. The devices change first, by the steps of `resize`, so that what guests are
//! told outlives the daemon; then the thread that serves goes by it. New room is zeroed past the scheduler.

use virtbench_fence::cache::identity;
use virtbench_fence::{DiskId, SchedulerConfig};

use super::edit::{DiskEdit, RotationEdit};
use super::resize::{Change, Plan, ResizeStep};
use super::resize_error::ResizeError;
use crate::cache_metadata::superblocks;
use crate::config::Config;
use crate::devices::Devices;
use crate::label::{Label, LabelError};
use crate::memory_log::Kept;
use crate::metrics::Board;
use crate::serve_error::ServeError;

/// The devices of a daemon at work, and what it goes by.
pub struct Live {
    pub(super) devices: Devices,
    pub(super) config: Config,
    /// Of the cache, where there is one.
    pub(super) memory: Kept,
    /// No disk's part of the cache is damaged.
    pub(super) is_whole: bool,
    /// Where the figures of all disks are shown.
    pub(super) board: Board,
}

impl Live {
    /// `config` is what is served, with predictions in it.
    pub(crate) const fn new(
        devices: Devices,
        config: Config,
        memory: Kept,
        is_whole: bool,
        board: Board,
    ) -> Self {
        Self { devices, config, memory, is_whole, board }
    }

    /// The figures of all disks.
    pub(crate) const fn board(&self) -> &Board {
        &self.board
    }

    /// Has a disk grow where it is. The new size is stable before `serve` gets it, which then lets clients use it.
    ///
    /// # Errors
    /// It does not fit, or only with the daemon stopped: nothing has changed. After a device's failure nothing is lost, and
    /// the same change completes it.
    pub fn resize(
        &mut self,
        change: &Change,
        mut progress: impl FnMut(ResizeStep),
        serve: impl FnOnce(DiskId, u64) -> Result<(), ResizeError>,
    ) -> Result<(), ResizeError> {
        let Self { devices, config, .. } = self;
        let memory = self.memory.log();
        let name = &change.disk;
        let plan = Plan::new(devices, config, change)?;
        let disk = config.disks.iter().position(|disk| disk.name == *name);
        let disk = disk.ok_or_else(|| ResizeError::NoDisk(name.clone()))?;
        let (was, is) = (&config.disks[disk], &plan.new.disks[disk]);
        let served = |why: &str| Err(ResizeError::Served(format!("disk {name} {why}")));
        if was.cache != is.cache {
            return served("keeps its part of the cache while it is served");
        }
        if is.size.0 < was.size.0 {
            return served(
                "cannot become smaller while it is served: requests in flight may lie behind its end",
            );
        }
        if plan.moves() {
            return served("has no room behind it and would have to move");
        }
        if plan.label != plan.placed {
            let cache = match devices.file(1) {
                Some((fast, name)) if plan.has_cache() => {
                    let found = identity(&superblocks(fast, name)?);
                    Some(found.map_err(|source| ServeError::Cache { device: name.to_owned(), source })?)
                }
                _ => None,
            };
            plan.carry_out(devices, cache.zip(memory.as_ref()), &mut |step| {
                progress(step);
                Ok(())
            })?;
        }
        serve(DiskId(u16::try_from(disk).unwrap_or(u16::MAX)), is.size.0)?;
        self.config = plan.new;
        Ok(())
    }

    /// Gives slots and shares anew; `serve` has the scheduler go by them.
    ///
    /// # Errors
    /// They do not fit with the rest: nothing has changed.
    pub fn reslot(
        &mut self,
        disks: &[DiskEdit],
        rotation: RotationEdit,
        serve: impl FnOnce(SchedulerConfig) -> Result<(), ResizeError>,
    ) -> Result<(), ResizeError> {
        let mut config = self.config.clone();
        for edit in disks {
            let disk = config.disks.iter_mut().find(|disk| disk.name == edit.disk);
            let disk = disk.ok_or_else(|| ResizeError::NoDisk(edit.disk.clone()))?;
            disk.slots = edit.slots.unwrap_or(disk.slots);
            disk.share = edit.share.or(disk.share);
        }
        let table = &mut config.scheduler;
        table.slot_ms = rotation.slot_ms.unwrap_or(table.slot_ms);
        table.spare_slots = rotation.spare_slots.unwrap_or(table.spare_slots);
        config.check().map_err(ResizeError::Value)?;
        let placed = match self.devices.file(self.devices.home_index()) {
            None => config.place(&[0; 16]),
            Some((file, device)) => {
                let none = || LabelError::None { device: device.to_owned() };
                Label::read(file, device)?.ok_or_else(none)?.place(&config)
            }
        };
        let fence = self.devices.fence(&config, placed, [0; 16]).map_err(ServeError::from)?;
        serve(fence.scheduler)?;
        self.config = config;
        Ok(())
    }
}
