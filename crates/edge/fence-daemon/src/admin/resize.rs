//! `fence resize`: another size or another part of the cache for a virtual disk that nobody serves, without losing data.
//!
//! Steps, each stable before the next and each done again without harm, so that the same command completes what a crash
//! has cut off: what the cache alone has is written to the disks, if it is divided anew; new room is zeroed, a disk that
//! needs another place is copied there; the cache's superblock changes; the label changes, and with it what the disk is.
//! The configuration file is the caller's, and comes last.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use thiserror::Error;
use virtbench_fence::Backing;
use virtbench_fence::cache::{BLOCK_BYTES, Image, RecoveryError, identity, inspect, resized};

use super::room::{Room, place};
use crate::config::{Built, Config, LoadError, Size};
use crate::label::{Label, LabelError, read_at, write_at};
use crate::memory::Buffer;
use crate::memory_log::{self, Mapped};
use crate::serve::{Devices, ServeError, carry_out, image, random_uuid};

/// Bytes that are copied or zeroed at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of a block of the cache, in memory.
#[allow(clippy::cast_possible_truncation)] // 4096
const BLOCK: usize = BLOCK_BYTES as usize;

/// What is to be changed of one disk.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its name.
    pub disk: String,
    /// Its new size in bytes.
    pub size_bytes: Option<u64>,
    /// Its new part of the cache in bytes.
    pub cache_bytes: Option<u64>,
    /// The end of the disk may be given up.
    pub give_up_end: bool,
}

/// What has just been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many blocks were written from the cache to the disks.
    WrittenBack(u64),
    /// The disk was copied to another place on its device.
    Moved,
    /// New room holds zeroes.
    Zeroed,
    /// The cache is that of the new sizes.
    Cache,
    /// The disk has its new size.
    Label,
}

/// Why a disk is not resized.
#[derive(Debug, Error)]
pub enum ResizeError {
    /// Devices or configuration cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No disk of that name.
    #[error("there is no disk {0}: see the [[disk]] tables of the configuration")]
    NoDisk(String),
    /// The new values do not fit with the rest.
    #[error("{0}")]
    Value(String),
    /// It would become smaller.
    #[error("disk {disk} has {was} bytes, fewer would give up its end: --force does so")]
    Shrinks {
        /// Which.
        disk: String,
        /// Its size.
        was: u64,
    },
    /// It fits nowhere.
    #[error("{device}: disk {disk} needs {needs} bytes in one piece; the largest free one has {largest}")]
    NoRoom {
        /// The device that disks live on.
        device: String,
        /// Which.
        disk: String,
        /// With the rest to a whole MiB.
        needs: u64,
        /// Free.
        largest: u64,
    },
    /// A cache that cannot be believed is not changed.
    #[error("{device}: {fault}: see `virtbench fence inspect --data`")]
    Damaged {
        /// The fast device.
        device: String,
        /// What is wrong.
        fault: String,
    },
    /// The caller has had enough; the same again goes on.
    #[error("interrupted: the same command again completes it")]
    Interrupted,
}

impl From<LabelError> for ResizeError {
    fn from(error: LabelError) -> Self {
        Self::Serve(error.into())
    }
}

impl Change {
    /// The configuration with the change made.
    ///
    /// # Errors
    /// There is no such disk, or the whole no longer fits together.
    pub fn apply(&self, config: &Config) -> Result<Config, ResizeError> {
        let mut config = config.clone();
        let disk = config.disks.iter_mut().find(|disk| disk.name == self.disk);
        let disk = disk.ok_or_else(|| ResizeError::NoDisk(self.disk.clone()))?;
        disk.size = self.size_bytes.map_or(disk.size, Size);
        disk.cache = self.cache_bytes.map(Size).or(disk.cache);
        config.check().map_err(ResizeError::Value)?;
        Ok(config)
    }
}

/// Carries a change out. `progress` hears of each step and says whether to go on.
///
/// # Errors
/// It does not fit, or the devices cannot be used: nothing has changed. After [`ResizeError::Interrupted`] or a failure of
/// a device, nothing is lost, and the same change completes it.
pub fn resize(
    config: &Config,
    change: &Change,
    mut progress: impl FnMut(Step) -> bool,
) -> Result<(), ResizeError> {
    let new = change.apply(config)?;
    let devices = Devices::open(config)?;
    let Some((file, device)) = devices.file(devices.home_index()) else {
        return Err(ResizeError::Value(
            "a disk on null: has no size to keep: change the configuration".into(),
        ));
    };
    let label = Label::read(file, device)?.ok_or_else(|| LabelError::None { device: device.to_owned() })?;
    // The label may have changed already, by the same command.
    label.check(config, device).or_else(|error| label.check(&new, device).map_err(|_| error))?;
    let capacity = devices.sizes()[devices.home_index()];
    let placed = place(&label, &new, capacity).map_err(|room| no_room(device, &room))?;
    for (was, is) in label.disks.iter().zip(&placed.disks) {
        if is.size_bytes < was.size_bytes && !change.give_up_end {
            return Err(ResizeError::Shrinks { disk: was.name.clone(), was: was.size_bytes });
        }
    }
    let disks = placed.place(&new);
    let fence = devices.fence(&new, disks, [0; 16]).map_err(ServeError::from)?;
    let mut tell = |step| if progress(step) { Ok(()) } else { Err(ResizeError::Interrupted) };

    let mut superblock = None;
    if let (Backing::Cached(cache), Some((fast, name))) = (&fence.backing, devices.file(1)) {
        let held = Held { file, fast, name, label: &label, new: &new, home: devices.home };
        let (keep, written) = held.write_back()?;
        tell(Step::WrittenBack(written))?;
        let uuid = match keep {
            Some(uuid) => uuid,
            None => random_uuid()?,
        };
        let mut cache = cache.clone();
        cache.uuid = uuid;
        superblock = Some((cache, fast, name));
    }
    for (was, is) in label.disks.iter().zip(&placed.disks) {
        let mut known = was.size_bytes.min(is.size_bytes);
        if was.offset_bytes != is.offset_bytes {
            copy(file, device, was.offset_bytes, is.offset_bytes, known)?;
            tell(Step::Moved)?;
        } else if was.size_bytes >= is.size_bytes {
            known = is.size_bytes;
        }
        if known < is.size_bytes {
            zero(file, device, is.offset_bytes + known, is.size_bytes - known)?;
            tell(Step::Zeroed)?;
        }
    }
    file.sync_all().map_err(|source| io(device, "syncing", source))?;
    if let Some((cache, fast, name)) = superblock {
        let blocks = crate::serve::superblocks(fast, name)?;
        let failed = |source| ServeError::Cache { device: name.to_owned(), source };
        let write = resized(&fence, &cache, &blocks).map_err(failed)?;
        if identity(&blocks).map_err(failed)? == cache.uuid {
            let memory = Mapped::open(&config.cache.memory, &blocks).map_err(ServeError::from)?;
            memory.log.precede(&blocks).map_err(failed)?;
            carry_out(fast, name, &write)?;
        } else {
            carry_out(fast, name, &write)?;
            memory_log::forget(&config.cache.memory, &blocks);
        }
        tell(Step::Cache)?;
    }
    if placed != label {
        Label { sequence: label.sequence + 1, ..placed }.replace(file, device)?;
        tell(Step::Label)?;
    }
    Ok(())
}

fn no_room(device: &str, room: &Room) -> ResizeError {
    let Room { disk, needs, largest } = room.clone();
    ResizeError::NoRoom { device: device.to_owned(), disk, needs, largest }
}

fn io(device: &str, action: &'static str, source: std::io::Error) -> LabelError {
    LabelError::Io { device: device.to_owned(), action, source }
}

/// What the cache holds, and where it belongs.
struct Held<'a> {
    file: &'a File,
    fast: &'a File,
    name: &'a str,
    label: &'a Label,
    new: &'a Config,
    home: Built,
}

impl Held<'_> {
    /// Writes dirty blocks to their disks, if the cache cannot be kept as it is. Gives the identity of one that can, and
    /// how many blocks were written.
    fn write_back(&self) -> Result<(Option<[u8; 16]>, u64), ResizeError> {
        let name = self.name;
        let cache = |source: RecoveryError| ServeError::Cache { device: name.to_owned(), source };
        let (superblocks, logs) = image(self.fast, name)?;
        let memory = memory_log::left(&self.new.cache.memory, &superblocks).map_err(ServeError::from)?;
        let image = Image { superblocks: &superblocks, logs: &logs, memory: memory.as_ref() };
        let found = inspect(&image).map_err(cache)?;
        if let Some(fault) = found.faults.first() {
            return Err(ResizeError::Damaged { device: name.to_owned(), fault: fault.to_string() });
        }
        let ours = self.label.place(self.new);
        let known =
            found.disks.len() == ours.len() && found.disks.iter().zip(&ours).all(|(a, b)| a.0 == b.uuid);
        let dirty: u32 = found.partitions.iter().map(|partition| partition.dirty).sum();
        if !known && dirty > 0 {
            let fault = "the cache is of other disks, and has what they have not".to_owned();
            return Err(ResizeError::Damaged { device: name.to_owned(), fault });
        }
        let blocks: Vec<u32> = found.partitions.iter().map(|partition| partition.blocks).collect();
        let shrinks = found.disks.iter().zip(&ours).any(|(was, is)| is.size_bytes < was.1);
        if known && blocks == self.new.cache_blocks(self.home) && !shrinks {
            return Ok((Some(found.uuid), 0));
        }
        let mut written = 0;
        let dirty = (0..found.partitions.len()).flat_map(|partition| found.live(partition));
        for block in dirty.filter(|block| block.dirty) {
            let data = read_at(self.fast, block.fast_offset_bytes, BLOCK)
                .map_err(|source| io(name, "reading the cache", source))?;
            if crc32c::crc32c(&data) != block.data_crc {
                let fault = format!("block {} is damaged", block.block);
                return Err(ResizeError::Damaged { device: name.to_owned(), fault });
            }
            // Where the disk is by the label that still counts.
            let Some(disk) = self.label.disks.get(usize::from(block.disk)) else { continue };
            if block.disk_offset_bytes < disk.size_bytes {
                self.file
                    .write_all_at(&data, disk.offset_bytes + block.disk_offset_bytes)
                    .map_err(|source| io(&disk.name, "writing back", source))?;
                written += 1;
            }
        }
        self.file.sync_all().map_err(|source| io(name, "syncing", source))?;
        Ok((None, written))
    }
}

fn copy(file: &File, device: &str, from: u64, to: u64, len: u64) -> Result<(), LabelError> {
    let mut at = 0;
    while at < len {
        let piece = (len - at).min(PIECE_BYTES);
        let bytes = read_at(file, from + at, usize::try_from(piece).unwrap_or(0))
            .map_err(|source| io(device, "copying a disk", source))?;
        file.write_all_at(&bytes, to + at).map_err(|source| io(device, "copying a disk", source))?;
        at += piece;
    }
    Ok(())
}

/// What somebody else had there is nobody's to see.
fn zero(file: &File, device: &str, from: u64, len: u64) -> Result<(), LabelError> {
    let flags = rustix::fs::FallocateFlags::ZERO_RANGE | rustix::fs::FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(file.as_fd(), flags, from, len).is_ok() {
        return Ok(());
    }
    let zeroes = Buffer::zeroed(usize::try_from(PIECE_BYTES).unwrap_or(0));
    let mut at = 0;
    while at < len {
        let piece = (len - at).min(PIECE_BYTES);
        write_at(file, from + at, &zeroes[..usize::try_from(piece).unwrap_or(0)])
            .map_err(|source| io(device, "zeroing new room", source))?;
        at += piece;
    }
    Ok(())
}

impl From<LoadError> for ResizeError {
    fn from(error: LoadError) -> Self {
        Self::Serve(error.into())
    }
}
