//! `fence resize`: another size or another part of the cache for a virtual disk, without losing data. While it is served,
//! the daemon does so (`live`), by the same steps as far as it can.
//!
//! Steps, each stable before the next and each done again without harm, so that the same command completes what a crash
//! has cut off: what the cache alone has is written to the disks, if it is divided anew; new room is zeroed, a disk that
//! needs another place is copied there; the cache's superblock changes; the label changes, and with it what the disk is.
//! The configuration file is the caller's, and comes last.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};
use virtbench_fence::cache::{CacheConfig, Inspection, MemoryLog, origin, resized};
use virtbench_fence::{Backing, Config as FenceConfig};

use super::held::{self, Held};
use super::resize_error::{ResizeError, io};
use super::room::{Room, place};
use crate::attach;
use crate::cache_metadata::{carry_out, superblocks};
use crate::config::{Built, Config, LoadError, Size};
use crate::device::{read_at, write_at};
use crate::devices::Devices;
use crate::label::{Cached, Label, LabelError};
use crate::memory::Buffer;
use crate::memory_log::{self, Mapped};
use crate::serve_error::ServeError;

/// Bytes that are copied or zeroed at once.
const PIECE_BYTES: u64 = 1 << 20;

/// What is to be changed of one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResizeStep {
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
    mut progress: impl FnMut(ResizeStep) -> bool,
) -> Result<(), ResizeError> {
    let (devices, _backends) = Devices::open(config)?;
    let plan = Plan::new(&devices, config, change)?;
    go_over(config, &devices, &plan, &mut |step| {
        if progress(step) { Ok(()) } else { Err(ResizeError::Interrupted) }
    })
}

/// Makes the devices of `config` those of a plan.
pub(super) fn go_over(
    config: &Config,
    devices: &Devices,
    plan: &Plan,
    tell: &mut dyn FnMut(ResizeStep) -> Result<(), ResizeError>,
) -> Result<(), ResizeError> {
    plan.check_cache(devices)?;
    let mut kept = None;
    if let (Some((fast, name)), true) = (devices.file(1), plan.has_cache()) {
        let (file, _) = home_of(devices)?;
        let held = Held { file, fast, name, label: &plan.label, config, memory: None };
        let found = held.inspect()?;
        kept = plan.can_keep(&found).then_some(found.uuid);
        let written = if kept.is_some() { 0 } else { held.write_back(&found, false)?.written };
        tell(ResizeStep::WrittenBack(written))?;
    }
    let memory = match (kept, devices.file(1)) {
        (Some(_), Some((fast, name))) => {
            let superblocks = superblocks(fast, name)?;
            Some(Mapped::open(&config.cache.memory, &superblocks).map_err(ServeError::from)?)
        }
        _ => None,
    };
    let kept = kept.zip(memory.as_ref().map(|memory| &memory.log));
    plan.carry_out(devices, kept, tell)?;
    memory.into_iter().for_each(Mapped::close);
    Ok(())
}

/// The device that disks live on.
pub(super) fn home_of(devices: &Devices) -> Result<(&File, &str), ResizeError> {
    devices.file(devices.home_index()).ok_or_else(|| {
        ResizeError::Value("a disk on null: has no size to keep: change the configuration".into())
    })
}

/// What is to be done, and fits.
pub(super) struct Plan {
    home: Built,
    /// How the device is divided, and how it will be.
    pub(super) label: Label,
    pub(super) placed: Label,
    /// What will be configured.
    pub(super) new: Config,
    fence: FenceConfig,
}

impl Plan {
    pub(super) fn new(devices: &Devices, config: &Config, change: &Change) -> Result<Self, ResizeError> {
        Self::towards(devices, config, change.apply(config)?, change.give_up_end)
    }

    /// From one configuration to another, whose disks may be others.
    pub(super) fn towards(
        devices: &Devices,
        config: &Config,
        new: Config,
        give_up_end: bool,
    ) -> Result<Self, ResizeError> {
        let (file, device) = home_of(devices)?;
        let label =
            Label::read(file, device)?.ok_or_else(|| LabelError::None { device: device.to_owned() })?;
        // The label may have changed already, by the same command.
        label.check(config, device).or_else(|error| label.check(&new, device).map_err(|_| error))?;
        let capacity = devices.sizes()[devices.home_index()];
        let placed = place(&label, &new, capacity).map_err(|room| no_room(device, &room))?;
        placed.check_length(device)?;
        for (was, is) in placed.disks.iter().filter_map(|is| Some((label.named(&is.name)?, is))) {
            if is.size_bytes < was.size_bytes && !give_up_end {
                return Err(ResizeError::Shrinks { disk: was.name.clone(), was: was.size_bytes });
            }
        }
        let disks = placed.place(&new);
        let fence = devices.fence(&new, disks, [0; 16]).map_err(ServeError::from)?;
        Ok(Self { home: devices.home, label, placed, new, fence })
    }

    /// Whether a disk that stays would have to be copied.
    pub(super) fn moves(&self) -> bool {
        let mut stay = self.placed.disks.iter().filter_map(|is| Some((self.label.named(&is.name)?, is)));
        stay.any(|(was, is)| was.offset_bytes != is.offset_bytes)
    }

    pub(super) const fn has_cache(&self) -> bool {
        matches!(self.fence.backing, Backing::Cached(_))
    }

    /// Refuses a cache that is not the newest of this device, and to do without it.
    fn check_cache(&self, devices: &Devices) -> Result<(), ServeError> {
        let Some((file, device)) = devices.file(devices.home_index()) else { return Ok(()) };
        match devices.file(1).filter(|_| self.has_cache()) {
            None => attach::alone(&self.label, file, device),
            Some((fast, name)) => held::check(&self.label, device, (fast, name), &self.new.cache.memory),
        }
    }

    /// Whether the cache can be that of the new sizes as it is.
    fn can_keep(&self, found: &Inspection) -> bool {
        let ours = self.label.place(&self.new);
        let known =
            found.disks.len() == ours.len() && found.disks.iter().zip(&ours).all(|(a, b)| a.0 == b.uuid);
        let blocks: Vec<u32> = found.partitions.iter().map(|partition| partition.blocks).collect();
        let shrinks = found.disks.iter().zip(&ours).any(|(was, is)| is.size_bytes < was.1);
        known && blocks == self.new.cache_blocks(self.home) && !shrinks
    }

    /// Everything but what the cache holds, which is on the disks by now unless the cache is `kept`, by its identity,
    /// with its log in memory.
    pub(super) fn carry_out(
        &self,
        devices: &Devices,
        kept: Option<([u8; 16], &MemoryLog)>,
        tell: &mut dyn FnMut(ResizeStep) -> Result<(), ResizeError>,
    ) -> Result<(), ResizeError> {
        self.make_room(devices, tell)?;
        self.divide(devices, kept, tell)
    }

    /// Disks have the places that they will have: what is not known of them is zero. What was there before stays valid.
    pub(super) fn make_room(
        &self,
        devices: &Devices,
        tell: &mut dyn FnMut(ResizeStep) -> Result<(), ResizeError>,
    ) -> Result<(), ResizeError> {
        let Self { label, placed, .. } = self;
        let (file, device) = home_of(devices)?;
        for is in &placed.disks {
            let Some(was) = label.named(&is.name) else {
                zero(file, device, is.offset_bytes, is.size_bytes)?;
                tell(ResizeStep::Zeroed)?;
                continue;
            };
            let mut known = was.size_bytes.min(is.size_bytes);
            if was.offset_bytes != is.offset_bytes {
                copy(file, device, was.offset_bytes, is.offset_bytes, known)?;
                tell(ResizeStep::Moved)?;
            } else if was.size_bytes >= is.size_bytes {
                known = is.size_bytes;
            }
            if known < is.size_bytes {
                zero(file, device, is.offset_bytes + known, is.size_bytes - known)?;
                tell(ResizeStep::Zeroed)?;
            }
        }
        file.sync_all().map_err(|source| io(device, "syncing", source).into())
    }

    /// The cache and the label go by the new sizes, in rooms that have been made.
    pub(super) fn divide(
        &self,
        devices: &Devices,
        kept: Option<([u8; 16], &MemoryLog)>,
        tell: &mut dyn FnMut(ResizeStep) -> Result<(), ResizeError>,
    ) -> Result<(), ResizeError> {
        let Self { label, placed, .. } = self;
        let (file, device) = home_of(devices)?;
        let divided = |tell: &mut dyn FnMut(ResizeStep) -> Result<(), ResizeError>| match placed == label {
            true => Ok(()),
            false => tell(ResizeStep::Label),
        };
        let (Backing::Cached(table), Some((fast, name))) = (&self.fence.backing, devices.file(1)) else {
            if placed != label {
                // Twice: no copy says where they were.
                let once = placed.followed_by(placed.cached, file, device)?;
                once.followed_by(once.cached, file, device)?;
            }
            return divided(tell);
        };
        let blocks = superblocks(fast, name)?;
        let failed = |source| ServeError::Cache { device: name.to_owned(), source };
        let before = origin(&blocks).map_err(failed)?;
        let uuid = kept.map_or_else(|| attach::successor(&before), |(uuid, _)| uuid);
        let write = resized(&self.fence, &CacheConfig { uuid, ..table.clone() }, &blocks).map_err(failed)?;
        let cached = Cached::Cache { uuid, start: before.start + 1, beginning: false };
        attach::advance(label, Label { cached, ..placed.clone() }, (file, device), &before, || {
            if let Some((_, memory)) = kept {
                memory.precede(&blocks).map_err(failed)?;
            }
            carry_out(fast, name, &write)?;
            if kept.is_none() {
                // Not before: the old cache without it is an older one.
                memory_log::forget(&self.new.cache.memory, &blocks);
            }
            tell(ResizeStep::Cache)
        })?;
        divided(tell)
    }
}

fn no_room(device: &str, room: &Room) -> ResizeError {
    let Room { disk, needs, largest } = room.clone();
    ResizeError::NoRoom { device: device.to_owned(), disk, needs, largest }
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

/// Old contents must not be seen.
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
