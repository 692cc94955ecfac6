//! `fence add` and `fence remove`: another virtual disk, or one less, while the fence is not served. The others keep what
//! they have.
//!
//! By the steps of `resize`: what the cache alone has comes to the disks, since it is divided anew; a new disk's room is
//! zeroed; the cache's superblock changes, then the label. The same command completes what was cut off.

use super::resize::{Plan, ResizeStep, go_over};
use super::resize_error::ResizeError;
use crate::config::{Config, DiskTable};
use crate::devices::Devices;

/// Gives the devices of a fence one disk more. `progress` hears of each step and says whether to go on.
///
/// # Errors
/// It does not fit, or the devices cannot be used or are being served: nothing has changed, or the same again completes it.
pub fn add(
    config: &Config,
    disk: &DiskTable,
    progress: impl FnMut(ResizeStep) -> bool,
) -> Result<(), ResizeError> {
    let mut new = config.clone();
    new.disks.push(disk.clone());
    change(config, new, progress)
}

/// Takes a disk from the devices of a fence, with all that it holds.
///
/// # Errors
/// There is no such disk, or none would be left; and as [`add`].
pub fn remove(
    config: &Config,
    name: &str,
    progress: impl FnMut(ResizeStep) -> bool,
) -> Result<(), ResizeError> {
    let mut new = config.clone();
    new.disks.retain(|disk| disk.name != name);
    if new.disks.len() == config.disks.len() {
        return Err(ResizeError::NoDisk(name.to_owned()));
    }
    change(config, new, progress)
}

fn change(
    config: &Config,
    new: Config,
    mut progress: impl FnMut(ResizeStep) -> bool,
) -> Result<(), ResizeError> {
    new.check().map_err(ResizeError::Value)?;
    let (devices, _backends) = Devices::open(config)?;
    let plan = Plan::towards(&devices, config, new, false)?;
    go_over(config, &devices, &plan, &mut |step| {
        if progress(step) { Ok(()) } else { Err(ResizeError::Interrupted) }
    })
}
