//! Data that only a cache has, and how it is written back to its disks while they are not served.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use virtbench_fence::cache::{BLOCK_BYTES, Inspection, LiveBlock};

use super::resize_error::{ResizeError, io};
use crate::attach;
use crate::cache_metadata::{image, inspected, superblocks};
use crate::config::Config;
use crate::device::read_at;
use crate::label::Label;
use crate::serve_error::ServeError;

/// Bytes of a block of the cache, in memory.
#[allow(clippy::cast_possible_truncation)] // 4096
const BLOCK: usize = BLOCK_BYTES as usize;

/// Refuses a cache that is not the newest of `device`, as a start does.
pub(super) fn check(
    label: &Label,
    device: &str,
    (fast, name): (&File, &str),
    folder: &Path,
) -> Result<(), ServeError> {
    let found = attach::find(Some((label, device)), name, &superblocks(fast, name)?)?;
    attach::check(label, [device, name], &found, || {
        let (superblocks, logs) = image(fast, name)?;
        Ok(attach::is_empty(&inspected(name, &superblocks, &logs, folder)?))
    })
}

/// A cache, and where what it holds belongs.
pub(super) struct Held<'a> {
    pub(super) file: &'a File,
    pub(super) fast: &'a File,
    pub(super) name: &'a str,
    pub(super) label: &'a Label,
    pub(super) config: &'a Config,
}

/// Blocks that were written to their disks, and those that are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Moved {
    pub(super) written: u64,
    pub(super) damaged: u64,
}

impl Held<'_> {
    /// What there is.
    ///
    /// # Errors
    /// It cannot be believed, or belongs to other disks.
    pub(super) fn inspect(&self) -> Result<Inspection, ResizeError> {
        let damaged = |fault| ResizeError::Damaged { device: self.name.to_owned(), fault };
        let (superblocks, logs) = image(self.fast, self.name)?;
        let found = inspected(self.name, &superblocks, &logs, &self.config.cache.memory)?;
        if let Some(fault) = found.faults.first() {
            return Err(damaged(fault.to_string()));
        }
        let ours = self.label.place(self.config);
        let known =
            found.disks.len() == ours.len() && found.disks.iter().zip(&ours).all(|(a, b)| a.0 == b.uuid);
        if !known && found.partitions.iter().any(|partition| partition.dirty > 0) {
            return Err(damaged("the cache is of other disks, and has what they have not".into()));
        }
        Ok(found)
    }

    /// Writes dirty blocks to their disks, so that they are stable there.
    ///
    /// # Errors
    /// A block is damaged, which `give_up` passes over; or a device cannot be used.
    pub(super) fn write_back(&self, found: &Inspection, give_up: bool) -> Result<Moved, ResizeError> {
        let mut moved = Moved::default();
        let live = (0..found.partitions.len()).flat_map(|partition| found.live(partition));
        for block in live.filter(|block| block.dirty) {
            let data = read_at(self.fast, block.fast_offset_bytes, BLOCK)
                .map_err(|source| io(self.name, "reading the cache", source))?;
            if crc32c::crc32c(&data) == block.data_crc {
                moved.written += u64::from(self.put(&block, &data)?);
            } else if give_up {
                moved.damaged += 1;
            } else {
                let fault = format!("block {} is damaged", block.block);
                return Err(ResizeError::Damaged { device: self.name.to_owned(), fault });
            }
        }
        self.file.sync_all().map_err(|source| io(self.name, "syncing", source))?;
        Ok(moved)
    }

    /// Where the disk is by the label that still counts. False if the disk ends before.
    fn put(&self, block: &LiveBlock, data: &[u8]) -> Result<bool, ResizeError> {
        let disk = self.label.disks.get(usize::from(block.disk));
        let Some(disk) = disk.filter(|disk| block.disk_offset_bytes < disk.size_bytes) else {
            return Ok(false);
        };
        self.file
            .write_all_at(data, disk.offset_bytes + block.disk_offset_bytes)
            .map_err(|source| io(&disk.name, "writing back", source))?;
        Ok(true)
    }
}
