//! The label of the device that virtual disks live on: whose bytes are whose, so that a configuration that was changed
//! cannot give one disk's data to another.
//!
//! It is text behind a short header, in two copies of 64 KiB at the device's beginning, which are written in turn: the valid
//! one with the higher sequence counts, so that a change happens whole or not at all.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_fence::DiskConfig;

use crate::config::Config;
use crate::device::{read_at, write_at};

const MAGIC: &[u8; 8] = b"vbfence\x01";
const BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 16;
/// What a label may still grow by: the cache, the folder in memory, longer numbers.
const SPARE_BYTES: usize = 4096 + 512;

/// Which device this is, and how it is divided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Identity, new with every format.
    pub uuid: [u8; 16],
    /// Rises with every change.
    #[serde(default)]
    pub sequence: u64,
    /// Partitions.
    #[serde(rename = "disk")]
    pub disks: Vec<Partition>,
    /// Where the newest data of its disks may be besides.
    #[serde(default)]
    pub cached: Cached,
    /// Where the daemon that served it last wrote down what was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPlace>,
    /// How the other copy of the label is.
    #[serde(skip)]
    pub other: OtherCopy,
}

/// A folder in memory, as long as the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlace {
    /// The folder.
    pub folder: PathBuf,
    /// The kernel's boot.
    pub boot: [u64; 2],
}

/// A label has two copies, of which the newer counts. What one says of disks and places, the other soon says too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherCopy {
    /// It says the same of the disks.
    #[default]
    Same,
    /// It is older and says something else, or was never written.
    Behind,
    /// It is torn or damaged: it may have been the newer one.
    Damaged,
}

/// What a device knows of a cache before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Cached {
    /// The label is of a version that did not say: the cache that is configured is believed.
    #[default]
    Unknown,
    /// The device has everything itself.
    Nothing,
    /// A cache has what the device has not yet.
    Cache {
        /// Its identity.
        uuid: [u8; 16],
        /// The number of its superblock at the last start of a daemon: an older one is a copy.
        start: u64,
        /// The superblock behind that one is about to be written, or the first of the cache that
        /// takes its place.
        beginning: bool,
    },
}

/// One virtual disk's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset_bytes: u64,
    /// Its size.
    pub size_bytes: u64,
}

/// Why a device may not be used as it is.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum LabelError {
    /// It was never formatted, or something else has overwritten it.
    #[error("{device} has no label of a fence: format it first (virtbench fence format)")]
    None { device: String },
    /// There is data.
    #[error("{device} has data of something else: --force formats it all the same and gives that up")]
    Foreign { device: String },
    /// It is a fence's.
    #[error(
        "{device} has {what} on it: `virtbench fence serve` uses it as it is, `fence resize` changes it, --force gives it up"
    )]
    Formatted {
        device: String,
        /// What of a fence.
        what: String,
    },
    /// It is divided in another way.
    #[error(
        "{device}: {change}: configure it as it was, change it with `virtbench fence resize`, or format anew and give up what is on it"
    )]
    Changed { device: String, change: String },
    /// It may have been divided in another way since.
    #[error(
        "{device}: {change}, but one of the two copies of its label is damaged, perhaps the newer one: the disks may have \
         been moved since, and lie older where this one says: copy the device before anything else is tried"
    )]
    Doubtful { device: String, change: String },
    /// Their names do not fit.
    #[error(
        "{device}: its label has room for {room} bytes, {disks} disks need {needs}: use fewer or shorter names"
    )]
    TooLong { device: String, disks: usize, needs: usize, room: usize },
    /// The cache has what the disks have not.
    #[error(
        "{device}: the cache holds blocks that are not yet on it: `virtbench fence drain` writes them there, --force gives \
         them up"
    )]
    Dirty { device: String },
    /// It cannot be read or written.
    #[error("{device}: {action}: {source}")]
    Io {
        device: String,
        /// What failed.
        action: &'static str,
        source: io::Error,
    },
}

impl Label {
    /// A new label for what is configured.
    #[must_use]
    pub fn new(config: &Config, uuid: [u8; 16]) -> Self {
        let place = |(disk, placed): (&crate::config::DiskTable, DiskConfig)| Partition {
            name: disk.name.clone(),
            offset_bytes: placed.offset_bytes,
            size_bytes: placed.size_bytes,
        };
        let disks = config.disks.iter().zip(config.place(&uuid)).map(place).collect();
        let (memory, other) = (None, OtherCopy::Same);
        Self { uuid, sequence: 0, disks, cached: Cached::Nothing, memory, other }
    }

    /// The label of a device, if it has one.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn read(file: &File, device: &str) -> Result<Option<Self>, LabelError> {
        let bytes = read_at(file, 0, 2 * BYTES).map_err(|source| LabelError::Io {
            device: device.to_owned(),
            action: "reading the label",
            source,
        })?;
        let mut copies: Vec<Option<Self>> = bytes.chunks_exact(BYTES).map(Self::decode).collect();
        let sequence = |copy: &Option<Self>| copy.as_ref().map(|label| label.sequence);
        let newest = usize::from(sequence(&copies[1]) > sequence(&copies[0]));
        let Some(mut label) = copies[newest].take() else { return Ok(None) };
        let other = 1 - newest;
        label.other = match &copies[other] {
            Some(copy) if copy.disks == label.disks => OtherCopy::Same,
            Some(_) => OtherCopy::Behind,
            None if bytes[other * BYTES..][..BYTES].iter().all(|byte| *byte == 0) => OtherCopy::Behind,
            None => OtherCopy::Damaged,
        };
        Ok(Some(label))
    }

    /// The place of a disk.
    pub(crate) fn named(&self, name: &str) -> Option<&Partition> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// Has the other copy say the same.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn agree(&self, file: &File, device: &str) -> Result<(), LabelError> {
        match self.other {
            OtherCopy::Same => Ok(()),
            OtherCopy::Behind | OtherCopy::Damaged => self.followed_by(self.cached, file, device).map(drop),
        }
    }

    /// Whether there is room for it.
    ///
    /// # Errors
    /// There are too many disks.
    pub fn check_length(&self, device: &str) -> Result<(), LabelError> {
        let (needs, room) = (toml::to_string(self).unwrap_or_default().len(), BYTES - HEADER_BYTES);
        if needs + SPARE_BYTES <= room {
            return Ok(());
        }
        Err(LabelError::TooLong { device: device.to_owned(), disks: self.disks.len(), needs, room })
    }

    /// Makes it the device's, whatever was there: for a label of sequence 0.
    ///
    /// # Errors
    /// The device cannot be written.
    pub fn write(&self, file: &File, device: &str) -> Result<(), LabelError> {
        self.put(file, device)?;
        write_at(file, BYTES as u64, &[0; BYTES]).map_err(|source| LabelError::Io {
            device: device.to_owned(),
            action: "writing the label",
            source,
        })
    }

    /// Takes the place of the label before it, by its sequence; stable when this returns.
    ///
    /// # Errors
    /// The device cannot be written; then the earlier label counts.
    pub fn replace(&self, file: &File, device: &str) -> Result<(), LabelError> {
        self.put(file, device)?;
        file.sync_all().map_err(|source| LabelError::Io {
            device: device.to_owned(),
            action: "writing the label",
            source,
        })
    }

    fn put(&self, file: &File, device: &str) -> Result<(), LabelError> {
        let copy = self.sequence % 2 * BYTES as u64;
        write_at(file, copy, &self.encode()).map_err(|source| LabelError::Io {
            device: device.to_owned(),
            action: "writing the label",
            source,
        })
    }

    /// The configured disks where they are. Their identity is of this label and their names.
    #[must_use]
    pub fn place(&self, config: &Config) -> Vec<DiskConfig> {
        let at = |name: &str| self.disks.iter().find(|disk| disk.name == name).map(|disk| disk.offset_bytes);
        let mut placed = config.place(&self.uuid);
        for (placed, disk) in placed.iter_mut().zip(&config.disks) {
            placed.offset_bytes = at(&disk.name).unwrap_or(placed.offset_bytes);
        }
        placed
    }

    /// Writes what follows it: the same, but for the cache.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn followed_by(&self, cached: Cached, file: &File, device: &str) -> Result<Self, LabelError> {
        let next = Self { sequence: self.sequence + 1, cached, ..self.clone() };
        next.replace(file, device)?;
        Ok(next)
    }

    /// Whether the beginning of a device is empty.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn is_empty(file: &File, device: &str) -> Result<bool, LabelError> {
        let bytes = read_at(file, 0, 2 * BYTES).map_err(|source| LabelError::Io {
            device: device.to_owned(),
            action: "reading its beginning",
            source,
        })?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// Whether the device is divided as configured.
    ///
    /// # Errors
    /// What has changed.
    pub fn check(&self, config: &Config, device: &str) -> Result<(), LabelError> {
        let wanted = Self::new(config, self.uuid);
        let of = |label: &Self, place: usize| match label.disks.get(place) {
            Some(disk) => format!("{} of {} bytes", disk.name, disk.size_bytes),
            None => "none".to_owned(),
        };
        let count = self.disks.len().max(wanted.disks.len());
        // Where they are the label alone knows.
        let what = |label: &Self, place: usize| {
            label.disks.get(place).map(|disk| (disk.name.clone(), disk.size_bytes))
        };
        match (0..count).find(|&place| what(self, place) != what(&wanted, place)) {
            None => Ok(()),
            Some(place) => {
                let device = device.to_owned();
                let change =
                    format!("disk {place} was {}, configured is {}", of(self, place), of(&wanted, place));
                Err(match self.other {
                    OtherCopy::Damaged => LabelError::Doubtful { device, change },
                    _ => LabelError::Changed { device, change },
                })
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let text = toml::to_string(self).unwrap_or_default();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
        bytes.extend(crc32c::crc32c(text.as_bytes()).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(BYTES, 0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let len = word(8)? as usize;
        let text = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(len)?)?;
        if crc32c::crc32c(text) != word(12)? {
            return None;
        }
        toml::from_str(std::str::from_utf8(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        let disk = |name: &str, offset_bytes| Partition { name: name.into(), offset_bytes, size_bytes: 4096 };
        let disks = vec![disk("a", 1 << 20), disk("b", 2 << 20)];
        Label {
            uuid: [7; 16],
            sequence: 3,
            disks,
            cached: Cached::Nothing,
            memory: None,
            other: OtherCopy::Same,
        }
    }

    #[test]
    fn a_label_is_read_as_it_was_written_or_not_at_all() {
        let mut bytes = label().encode();
        assert_eq!(Label::decode(&bytes), Some(label()));
        assert_eq!(Label::decode(&bytes[..10]), None);
        let cached = Cached::Cache { uuid: [9; 16], start: 7, beginning: true };
        let behind = Label { cached, ..label() };
        assert_eq!(Label::decode(&behind.encode()), Some(behind));
        bytes[20] ^= 1;
        assert_eq!(Label::decode(&bytes), None);
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Label::decode(&bytes), None);
    }

    #[test]
    fn the_other_copy_is_told_by_what_it_says_of_the_disks() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let other = |file: &File| Label::read(file, "d").unwrap().unwrap();
        label().put(&file, "d").unwrap();
        assert_eq!(other(&file).other, OtherCopy::Behind, "never written");
        other(&file).agree(&file, "d").unwrap();
        assert_eq!((other(&file).other, other(&file).sequence), (OtherCopy::Same, 4));
        let mut moved = Label { sequence: 5, ..label() };
        moved.disks[0].offset_bytes = 5 << 20;
        moved.put(&file, "d").unwrap();
        assert_eq!(other(&file).other, OtherCopy::Behind);
        write_at(&file, 0, &[9; 512]).unwrap();
        let doubtful = other(&file);
        assert_eq!((doubtful.other, doubtful.sequence), (OtherCopy::Damaged, 5));
        write_at(&file, BYTES as u64, &[9; 512]).unwrap();
        assert_eq!(Label::read(&file, "d").unwrap(), None);
    }

    #[test]
    fn more_disks_than_there_is_room_for_are_refused_by_name() {
        let disk =
            |n: usize| Partition { name: format!("disk-{n}"), offset_bytes: 1 << 50, size_bytes: 1 << 40 };
        let with = |disks| Label { disks: (0..disks).map(disk).collect(), ..label() };
        assert!(with(600).check_length("d").is_ok());
        let error = with(1000).check_length("d").unwrap_err().to_string();
        assert!(error.contains("1000 disks need"), "{error}");
        assert_eq!(Label::decode(&with(600).encode()).map(|label| label.disks.len()), Some(600));
    }

    #[test]
    fn a_label_that_says_nothing_of_a_cache_is_one_of_an_earlier_version() {
        let text = "uuid = [7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]\n[[disk]]\nname = 'a'\noffset_bytes = 0\nsize_bytes = 1";
        let label: Label = toml::from_str(text).unwrap();
        assert_eq!((label.cached, label.sequence), (Cached::Unknown, 0));
    }
}
