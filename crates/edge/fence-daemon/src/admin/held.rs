//! Data that only a cache has, and how it is written back to its disks while they are not served.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use virtbench_fence::cache::{BLOCK_BYTES, Inspection, LiveBlock, MemoryLog};

use super::given_up::{GivenUp, Lost, Why};
use super::resize_error::{ResizeError, io};
use super::salvage::{read_again, read_what_can_be};
use crate::attach;
use crate::cache_metadata::{image, inspected, inspected_with, logs, superblocks};
use crate::config::Config;
use crate::label::Label;
use crate::memory_log;
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
    let first = superblocks(fast, name)?;
    let found = attach::find(Some((label, device)), name, &first)?;
    memory_log::check_place(label.memory.as_ref(), folder, &first)?;
    attach::check(label, [device, name], &found, || {
        let (superblocks, logs) = image(fast, name)?;
        Ok(attach::is_empty(&inspected(name, &superblocks, &logs, folder)?))
    })
}

const UNTOLD: &str = "a sync of the slow device has lost what was written past the cache, and no client has heard of it: serve it once, \
                      so that the next flush of its clients fails, or give it up by `virtbench fence drain --force`";

/// A cache, and where what it holds belongs.
pub(super) struct Held<'a> {
    pub(super) file: &'a File,
    pub(super) fast: &'a File,
    pub(super) name: &'a str,
    pub(super) label: &'a Label,
    pub(super) config: &'a Config,
    /// The log in memory of the daemon that serves it; else it is looked for.
    pub(super) memory: Option<&'a MemoryLog>,
}

/// Blocks that were written to their disks, and those that could not be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Moved {
    pub(super) written: u64,
    pub(super) given_up: Vec<GivenUp>,
}

impl Held<'_> {
    /// What there is.
    ///
    /// # Errors
    /// It cannot be believed, or belongs to other disks.
    pub(super) fn inspect(&self) -> Result<Inspection, ResizeError> {
        let (superblocks, logs) = image(self.fast, self.name)?;
        let left = match self.memory {
            Some(_) => None,
            None => memory_log::left(&self.config.cache.memory, &superblocks).map_err(ServeError::from)?,
        };
        if left.as_ref().is_some_and(|left| left.is_loss_untold(&superblocks) == Ok(true)) {
            return Err(ResizeError::Value(UNTOLD.to_owned()));
        }
        let memory = self.memory.or(left.as_ref());
        let found = inspected_with(self.name, &superblocks, &logs, memory)?;
        if let Some(fault) = found.faults.first() {
            return Err(ResizeError::Damaged { device: self.name.to_owned(), fault: fault.to_string() });
        }
        self.of_these_disks(found)
    }

    /// What can still be read, whatever is damaged, and what that leaves open, by name.
    ///
    /// # Errors
    /// It belongs to other disks.
    pub(super) fn salvage(&self, superblocks: &[u8]) -> Result<(Inspection, Vec<String>), ResizeError> {
        let mut doubts = Vec::new();
        let logs = logs(self.name, superblocks, |offset, len| {
            let (log, unreadable) = read_what_can_be(self.fast, offset, len);
            doubts.extend(unreadable.map(|at| format!("{}: byte {at} of the log cannot be read", self.name)));
            Ok(log)
        })?;
        let found = inspected(self.name, superblocks, &logs, &self.config.cache.memory)?;
        let of = |partition: Option<usize>| match (partition, found.partitions.len()) {
            (Some(partition), 2..) => self.label.disks.get(partition).map(|disk| disk.name.clone()),
            _ => None,
        };
        for fault in &found.faults {
            let disk = of(fault.partition()).map_or_else(|| "any disk".into(), |disk| format!("disk {disk}"));
            doubts.push(format!(
                "{fault}: writes of {disk} of which nothing else is known are given up: check what is on it"
            ));
        }
        if found.more_faults > 0 {
            doubts.push(format!("{} faults more", found.more_faults));
        }
        Ok((self.of_these_disks(found)?, doubts))
    }

    fn of_these_disks(&self, found: Inspection) -> Result<Inspection, ResizeError> {
        let ours = self.label.place(self.config);
        let known =
            found.disks.len() == ours.len() && found.disks.iter().zip(&ours).all(|(a, b)| a.0 == b.uuid);
        if !known && found.partitions.iter().any(|partition| partition.dirty > 0) {
            return Err(ResizeError::OfOtherDisks { device: self.name.to_owned() });
        }
        Ok(found)
    }

    /// Writes dirty blocks to their disks, so that they are stable there.
    ///
    /// # Errors
    /// A block is damaged or unreadable, which `give_up` passes over by name; or the disks cannot be written, which nothing
    /// passes over.
    pub(super) fn write_back(&self, found: &Inspection, give_up: bool) -> Result<Moved, ResizeError> {
        let (mut written, mut lost) = (0, Lost::default());
        let live = (0..found.partitions.len()).flat_map(|partition| found.live(partition));
        for block in live.filter(|block| block.dirty) {
            let why = match read_again(self.fast, block.fast_offset_bytes, BLOCK) {
                Ok(data) if crc32c::crc32c(&data) == block.data_crc => {
                    written += u64::from(self.put(&block, &data)?);
                    continue;
                }
                Ok(_) => Why::Damaged,
                Err(_) if give_up => Why::Unreadable,
                Err(source) => return Err(io(self.name, "reading the cache", source).into()),
            };
            if !give_up {
                let fault = format!("block {} is damaged", block.block);
                return Err(ResizeError::Damaged { device: self.name.to_owned(), fault });
            }
            if let Some(disk) = self.label.disks.get(usize::from(block.disk)) {
                lost.add(&disk.name, block.disk_offset_bytes, why);
            }
        }
        if let Err(source) = self.file.sync_all() {
            let superblocks = superblocks(self.fast, self.name)?;
            memory_log::slow_sync_failed(&self.config.cache.memory, &superblocks)
                .map_err(ServeError::from)?;
            return Err(io("the slow device", "syncing", source).into());
        }
        Ok(Moved { written, given_up: lost.ranges() })
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
