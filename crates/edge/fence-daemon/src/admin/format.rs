//! `fence format`: devices become those of a configuration.

use std::fs::File;

use virtbench_fence::Backing;
use virtbench_fence::cache::{CacheConfig, format as format_cache, origin};

use crate::attach;
use crate::cache_metadata::{carry_out, image, inspected, superblocks};
use crate::config::Config;
use crate::devices::Devices;
use crate::identity::random_uuid;
use crate::label::{Label, LabelError};
use crate::memory_log;
use crate::serve_error::{ServeError, system};

/// Makes the devices of a configuration its own: divided, and with an empty cache.
///
/// # Errors
/// There is something on them, be it a fence's or not, and `force` is not given; or they cannot be used.
pub fn format(config: &Config, force: bool) -> Result<(), ServeError> {
    let (devices, _backends) = Devices::open(config)?;
    let label = Label::new(config, random_uuid()?);
    let fence = devices.fence(config, config.place(&label.uuid), random_uuid()?)?;
    let home = devices.home_index();
    if let Some((_, name)) = devices.file(home) {
        label.check_length(name)?;
    }
    if !force {
        for (file, name) in [1, 0].into_iter().filter_map(|index| devices.file(index)) {
            check_empty(config, file, name)?;
        }
    }
    if let (Backing::Cached(cache), Some((file, name))) = (&fence.backing, devices.file(1)) {
        empty_cache(config, &fence, cache, (file, name))?;
    }
    if let Some((file, name)) = devices.file(home) {
        label.write(file, name)?;
        file.sync_all().map_err(|source| system("syncing a device", source))?;
    }
    Ok(())
}

/// Makes the fast device an empty cache, whatever was there.
pub(super) fn empty_cache(
    config: &Config,
    fence: &virtbench_fence::Config,
    cache: &CacheConfig,
    (file, name): (&File, &str),
) -> Result<(), ServeError> {
    if let Ok(before) = superblocks(file, name) {
        memory_log::forget(&config.cache.memory, &before);
    }
    format_cache(fence, cache).iter().try_for_each(|write| carry_out(file, name, write))
}

/// Refuses a device with anything on it.
pub(super) fn check_empty(config: &Config, file: &File, name: &str) -> Result<(), ServeError> {
    let device = name.to_owned();
    if let Some(label) = Label::read(file, name)? {
        let disks: Vec<String> = label.disks.into_iter().map(|disk| disk.name).collect();
        let what = format!("the disks of a fence ({})", disks.join(", "));
        return Err(LabelError::Formatted { device, what }.into());
    }
    if origin(&superblocks(file, name)?).is_ok() {
        let found =
            image(file, name).and_then(|(first, logs)| inspected(name, &first, &logs, &config.cache.memory));
        return Err(match found {
            Ok(found) if found.partitions.iter().any(|partition| partition.dirty > 0) => {
                LabelError::Dirty { device }
            }
            Ok(found) if attach::is_empty(&found) => {
                LabelError::Formatted { device, what: "the empty cache of a fence".into() }
            }
            _ => LabelError::Formatted { device, what: "the cache of a fence".into() },
        }
        .into());
    }
    if Label::is_empty(file, name)? { Ok(()) } else { Err(LabelError::Foreign { device }.into()) }
}
