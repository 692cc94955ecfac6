//! Changes of a fence at work: a disk grows, the scheduler goes by other numbers. Requests in flight go on.

use thiserror::Error;

use super::Fence;
use crate::config_error::ConfigError;
use crate::schedulers::SchedulerConfig;
use crate::types::{DiskId, Time};

/// Why a fence at work stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The whole would not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such disk.
    #[error("there is no disk {0}")]
    NoDisk(usize),
    /// What is in flight or in the cache may lie behind the new end, which could soon be a neighbour's.
    #[error("disk {disk} has {was} bytes: at work it can only grow")]
    Shrinks {
        /// The disk that would shrink.
        disk: usize,
        /// Its size.
        was: u64,
    },
    /// Another scheduler, or one that knows no such change.
    #[error("the scheduler at work cannot go over to that one")]
    Scheduler,
}

impl Fence {
    /// Gives a disk more room where it is: requests that come after this may use it. The caller has made sure that the
    /// room is on the device and holds nothing of others'.
    ///
    /// # Errors
    /// The room is another disk's or not on the device, or the disk would become smaller: nothing has changed.
    pub fn grow_disk(&mut self, disk: DiskId, size_bytes: u64) -> Result<(), ChangeError> {
        let mut disks = self.config.disks.clone();
        let grown = disks.get_mut(disk.index()).ok_or_else(|| ChangeError::NoDisk(disk.index()))?;
        if size_bytes < grown.size_bytes {
            return Err(ChangeError::Shrinks { disk: disk.index(), was: grown.size_bytes });
        }
        grown.size_bytes = size_bytes;
        let before = std::mem::replace(&mut self.config.disks, disks);
        if let Err(error) = self.config.validate() {
            self.config.disks = before;
            return Err(error.into());
        }
        Ok(())
    }

    /// Gives slots or shares anew, to slots and virtual devices respectively. What is queued stays queued; slots go by it
    /// from the next rotation on, virtual devices for what comes from now on.
    ///
    /// # Errors
    /// It does not fit with the disks, or the scheduler at work is of another kind: nothing has changed.
    pub fn reschedule(&mut self, now: Time, scheduler: &SchedulerConfig) -> Result<(), ChangeError> {
        scheduler.validate(self.config.disks.len())?;
        if *scheduler == self.config.scheduler {
            return Ok(());
        }
        if !self.ports.reconfigure(scheduler.settings()) {
            return Err(ChangeError::Scheduler);
        }
        self.config.scheduler = scheduler.clone();
        self.advance(now);
        Ok(())
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
