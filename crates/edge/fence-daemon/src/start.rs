//! A fence begins over its cache: the cache's superblock and the label say so before anything is served.

use std::fs::File;

use virtbench_fence::cache::{Image, MemoryLog, RecoveryError, origin};
use virtbench_fence::{Config as FenceConfig, Fence, StartError};

use crate::attach;
use crate::cache_metadata::carry_out;
use crate::label::{Cached, Label, MemoryPlace};
use crate::serve_error::{ServeError, system};

/// The label, the device that has it, and where the log in memory lies.
pub(crate) type Home<'a> = (&'a Label, (&'a File, &'a str), Option<MemoryPlace>);

/// A fence over the cache of this image, on the device `fast`, for the disks of `home`, where these are on a device that has a label.
///
/// # Errors
/// The cache does not fit the configuration, or a device cannot be written.
pub(crate) fn over<L: AsRef<[u8]>>(
    fence: FenceConfig,
    image: &Image<'_, L>,
    (file, name): (&File, &str),
    home: Option<Home<'_>>,
) -> Result<Fence, ServeError> {
    let cache = |source| ServeError::Cache { device: name.to_owned(), source };
    let found = origin(image.superblocks).map_err(cache)?;
    let (fence, writes) = Fence::recover(fence, image).map_err(|error| match error {
        StartError::Config(error) => error.into(),
        StartError::Recovery(source) => cache(source),
        StartError::NoCache => cache(RecoveryError::NoSuperblock),
    })?;
    let write = || writes.iter().try_for_each(|write| carry_out(file, name, write));
    let Some((label, (slow, device), memory)) = home else {
        write()?;
        return Ok(fence);
    };
    if let Err(source) = slow.sync_data() {
        image.memory.into_iter().for_each(MemoryLog::slow_sync_failed);
        return Err(system("syncing the slow device", source));
    }
    let cached = Cached::Cache { uuid: found.uuid, start: found.start + 1, beginning: false };
    let then = Label { cached, memory, ..label.clone() };
    attach::advance(label, then, (slow, device), &found, write)?;
    Ok(fence)
}
