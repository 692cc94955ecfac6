//! Data that only a cache has, and how it is written back to its disks while they are not served.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::{fmt, io};

use virtbench_fence::cache::{BLOCK_BYTES, Inspection, LiveBlock, MemoryLog};

use super::resize_error::{ResizeError, io};
use crate::cache_metadata::{image, inspected, inspected_with, logs, superblocks};
use crate::config::Config;
use crate::device::read_at;
use crate::label::Label;
use crate::memory::Buffer;
use crate::serve_error::ServeError;
use crate::{attach, memory_log};

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

/// Why a block is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It does not have the sum that it was written with.
    Damaged,
    /// The device does not give it.
    Unreadable,
}

/// A range of a disk that goes on with what the disk had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The disk's name.
    pub disk: String,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub len_bytes: u64,
    /// What the cache has in its place.
    pub why: Why,
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk, offset_bytes, len_bytes, why } = self;
        let end = offset_bytes + len_bytes - 1;
        let why = match why {
            Why::Damaged => "damaged in the cache",
            Why::Unreadable => "unreadable in the cache",
        };
        write!(f, "disk {disk}: bytes {offset_bytes} to {end}: {why}: the disk has what it had before")
    }
}

/// Blocks by disk and place, in ranges.
#[derive(Debug, Default)]
pub(super) struct Lost {
    blocks: BTreeMap<(String, u64), Why>,
}

impl Lost {
    pub(super) fn add(&mut self, disk: &str, offset_bytes: u64, why: Why) {
        self.blocks.insert((disk.to_owned(), offset_bytes), why);
    }

    pub(super) fn ranges(self) -> Vec<GivenUp> {
        let mut ranges: Vec<GivenUp> = Vec::new();
        for ((disk, offset_bytes), why) in self.blocks {
            match ranges.last_mut() {
                Some(last)
                    if last.disk == disk
                        && last.why == why
                        && last.offset_bytes + last.len_bytes == offset_bytes =>
                {
                    last.len_bytes += BLOCK_BYTES;
                }
                _ => ranges.push(GivenUp { disk, offset_bytes, len_bytes: BLOCK_BYTES, why }),
            }
        }
        ranges
    }
}

/// How often a piece is read before it counts as unreadable.
const ATTEMPTS: usize = 10;

const PIECE_BYTES: usize = 4096;

/// What no metadata is, in place of what cannot be read.
const UNREADABLE: u8 = 0xaa;

/// Reads a piece; a device that fails for a moment is read again.
///
/// # Errors
/// It fails every time.
pub(super) fn read_again(file: &File, offset: u64, len: usize) -> io::Result<Buffer> {
    let mut attempts = (1..ATTEMPTS).map(|_| read_at(file, offset, len));
    match attempts.find(Result::is_ok) {
        Some(read) => read,
        None => read_at(file, offset, len),
    }
}

/// Reads whole pieces of 4 KiB; in place of those that cannot be read stands what is none of a cache's. Gives the first of
/// them too.
pub(super) fn read_what_can_be(file: &File, offset: u64, len: usize) -> (Buffer, Option<u64>) {
    if let Ok(all) = read_at(file, offset, len) {
        return (all, None);
    }
    let mut all = Buffer::zeroed(len);
    let mut unreadable = None;
    for (place, piece) in all.chunks_mut(PIECE_BYTES).enumerate() {
        let at = offset + (place * PIECE_BYTES) as u64;
        match read_again(file, at, piece.len()) {
            Ok(read) => piece.copy_from_slice(&read),
            Err(_) => {
                piece.fill(UNREADABLE);
                unreadable.get_or_insert(at);
            }
        }
    }
    (all, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let mut lost = Lost::default();
        for (disk, block, why) in [
            ("b", 1, Why::Damaged),
            ("a", 3, Why::Damaged),
            ("a", 2, Why::Damaged),
            ("a", 4, Why::Unreadable),
        ] {
            lost.add(disk, block * BLOCK_BYTES, why);
        }
        let ranges = lost.ranges();
        let found: Vec<_> =
            ranges.iter().map(|range| (range.disk.as_str(), range.offset_bytes, range.len_bytes)).collect();
        assert_eq!(found, [("a", 8192, 8192), ("a", 16384, 4096), ("b", 4096, 4096)]);
        assert!(ranges[0].to_string().starts_with("disk a: bytes 8192 to 16383: damaged"), "{}", ranges[0]);
    }
}
