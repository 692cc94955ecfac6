//! What a driver's process leaves in memory when it is killed: the entries of answered writes that no commit has made
//! stable yet.
//!
//! The guests that were answered live on with the machine: they continue with the next process and expect each answered write to
//! be there, though it has not flushed it. Data is on the device by then; what is missing is the entry that names its
//! block. So each is stored here before the write is answered, in memory that outlives the process.
//!
//! A partition has two halves. The entries that commit n will write go into half n modulo 2, behind each other, and void
//! are those of commits that are on the device; so nothing is ever taken out, and a half begins anew while the commit that
//! makes the other void is not even begun. A half that is full halts writes until the next commit begins. To see that
//! nothing is left, counts are taken back to 0.
//!
//! ```text
//! word 0       MAGIC, last of all when the log is made
//! 1, 2         identity of the cache
//! 3            number of the superblock that it goes with, or of the one that is about to be written
//! 4, 5         epoch: what lies in here is believed while it is the same, which a power failure ends
//! 6            partitions
//! 7            sum of 1, 2, 4, 5 and 6
//! 8 ...        for each partition two halves: number of the commit, entries, 2 words of bits, then 4 words an entry
//! ```
//!
//! A bit for each disk: in the first half of a partition, whether writes past the cache were answered and lost and no flush has
//! told; in the second, whether some were answered that no sync has made stable.
//!
//! The number of the superblock and that of the entries have their sum in the upper half of their word, so that both change
//! at once; that of the entries includes the commit's number. No entries are a word of 0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use super::faults::Fault;
use super::metadata::{ENTRY_BYTES, Entry, Identity, Layout, Superblock, u64_at};

const MAGIC: u64 = u64::from_le_bytes(*b"vbfmem02");

const UUID: usize = 1;

const SEQUENCE: usize = 3;

const EPOCH: usize = 4;

const PARTITIONS: usize = 6;

const SUM: usize = 7;

const HEADER: usize = 8;

/// Words before the entries of a half: the commit's number and how many entries there are.
const HALF_HEADER: usize = 4;

const COUNT: usize = 1;

const BITS: usize = 2;

/// Halves whose bits say so.
const UNTOLD: u64 = 0;

const UNSYNCED: u64 = 1;

const ENTRY_WORDS: usize = ENTRY_BYTES / 8;

/// Entries of a half: room for what is written during a long commit, and twice over for the longest request.
const FEWEST: usize = 8320;

const MOST: usize = 1 << 16;

type Words = dyn AsRef<[AtomicU64]> + Send + Sync;

/// Memory that outlives the process, and what makes it believable. Clones are the same memory.
#[derive(Clone)]
pub struct MemoryLog {
    words: Arc<Words>,
    epoch: [u64; 2],
}

impl MemoryLog {
    /// Words that the log of a cache with partitions of so many data blocks takes: a thousandth of the cache, or little.
    #[must_use]
    pub fn words(partitions: &[u32]) -> usize {
        let most = partitions.iter().max().map_or(0, |&blocks| blocks as usize);
        let entries = (most / 16).clamp(FEWEST, MOST);
        HEADER + partitions.len() * 2 * (HALF_HEADER + entries * ENTRY_WORDS)
    }

    /// Memory as it is: zeroes at first. `epoch` changes whenever what is on the devices may have been lost: at best the
    /// kernel's boot.
    #[must_use]
    pub fn new(words: Arc<Words>, epoch: [u64; 2]) -> Self {
        Self { words, epoch }
    }

    /// Other memory, zeroes at first, that is believed as long as this one.
    #[must_use]
    pub fn renewed(&self, words: Arc<Words>) -> Self {
        Self { words, epoch: self.epoch }
    }

    /// To be called before a superblock that takes the place of these (the first 8192 bytes of the fast device) is
    /// written: what is in here goes with either.
    ///
    /// # Errors
    /// [`RecoveryError::NoSuperblock`].
    pub fn precede(&self, superblocks: &[u8]) -> Result<(), RecoveryError> {
        let found = newest(superblocks)?;
        if self.whose(&found) == Whose::Ours {
            self.set(SEQUENCE, summed(found.sequence + 1, 0));
        }
        Ok(())
    }

    /// The slow device could not be synced before a fence over this serves: what a process that was killed had written past
    /// the cache is lost, and the next flush of these disks fails.
    pub fn slow_sync_failed(&self) {
        let partitions = usize::try_from(self.get(PARTITIONS)).unwrap_or(0);
        for partition in 0..partitions {
            let [untold, unsynced] = [UNTOLD, UNSYNCED].map(|half| self.half(partitions, partition, half));
            self.set_bits(untold, self.bits(untold) | self.bits(unsynced));
        }
    }

    /// Whether a sync of the slow device has lost what was written past the cache with these superblocks (the first 8192 bytes
    /// of the fast device), and no flush has told.
    ///
    /// # Errors
    /// [`RecoveryError::NoSuperblock`].
    pub fn is_loss_untold(&self, superblocks: &[u8]) -> Result<bool, RecoveryError> {
        let found = newest(superblocks)?;
        let partitions = found.partitions.len();
        let of = |partition| self.bits(self.half(partitions, partition, UNTOLD)) != 0;
        Ok(self.whose(&found) == Whose::Ours && (0..partitions).any(of))
    }

    /// A bit for each disk, of the half that begins there.
    fn bits(&self, half: usize) -> u128 {
        u128::from(self.get(half + BITS)) | u128::from(self.get(half + BITS + 1)) << 64
    }

    #[allow(clippy::cast_possible_truncation)] // in halves
    fn set_bits(&self, half: usize, bits: u128) {
        self.set(half + BITS, bits as u64);
        self.set(half + BITS + 1, (bits >> 64) as u64);
    }

    /// Whether there is nothing in here that is not on the device.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let partitions = usize::try_from(self.get(PARTITIONS)).unwrap_or(0);
        let nothing = |half| self.get(half + COUNT) == 0 && self.bits(half) == 0;
        (0..partitions)
            .all(|partition| (0..2).all(|parity| nothing(self.half(partitions, partition, parity))))
    }

    fn get(&self, at: usize) -> u64 {
        (*self.words).as_ref().get(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = (*self.words).as_ref().get(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// Entries of a half.
    fn capacity(&self, partitions: usize) -> usize {
        let half = ((*self.words).as_ref().len().saturating_sub(HEADER)) / (2 * partitions).max(1);
        half.saturating_sub(HALF_HEADER) / ENTRY_WORDS
    }

    /// First word of a half.
    fn half(&self, partitions: usize, partition: usize, commit: u64) -> usize {
        let half = HALF_HEADER + self.capacity(partitions) * ENTRY_WORDS;
        HEADER + (2 * partition + usize::from(!commit.is_multiple_of(2))) * half
    }

    fn whose(&self, found: &Superblock) -> Whose {
        let sequence = self.get(SEQUENCE);
        match self.get(0) {
            0 => return Whose::Unused,
            MAGIC if self.get(SUM) == self.header_sum() && is_summed(sequence, 0) => {}
            _ => return Whose::Damaged,
        }
        let goes_with = |superblock: u64| sequence == summed(superblock, 0);
        let ours = [self.get(UUID), self.get(UUID + 1)] == halves(&found.uuid)
            && [self.get(EPOCH), self.get(EPOCH + 1)] == self.epoch
            && self.get(PARTITIONS) == found.partitions.len() as u64
            && (goes_with(found.sequence) || goes_with(found.sequence + 1));
        if ours { Whose::Ours } else { Whose::Another }
    }

    fn header_sum(&self) -> u64 {
        let words = [UUID, UUID + 1, EPOCH, EPOCH + 1, PARTITIONS];
        let sum = |sum, word: usize| crc32c::crc32c_append(sum, &self.get(word).to_le_bytes());
        u64::from(words.into_iter().fold(0, sum))
    }

    /// What was answered and is not in commit `stable` or an earlier one: of each key the newest version, and the highest
    /// numbers of a commit and of a version in use.
    pub(super) fn read(&self, found: &Superblock, partition: usize, stable: u64) -> Answered {
        let mut answered = Answered::default();
        match self.whose(found) {
            Whose::Ours => {}
            Whose::Damaged => return Answered { damaged: true, ..answered },
            Whose::Unused | Whose::Another => return answered,
        }
        let (partitions, identity) = (found.partitions.len(), Identity::new(&found.uuid));
        for parity in 0..2 {
            let half = self.half(partitions, partition, parity);
            let (commit, count) = (self.get(half), self.get(half + COUNT));
            if count == 0 {
                continue;
            }
            answered.damaged |= !is_summed(count, commit);
            if commit <= stable {
                continue;
            }
            let count = (count & LOW) as usize;
            for place in 0..count.min(self.capacity(partitions)) {
                let at = half + HALF_HEADER + place * ENTRY_WORDS;
                let mut bytes = [0; ENTRY_BYTES];
                for (word, bytes) in (at..).zip(bytes.chunks_exact_mut(8)) {
                    bytes.copy_from_slice(&self.get(word).to_le_bytes());
                }
                let Some(entry) = Entry::decode(identity, &bytes) else {
                    answered.damaged = true;
                    break;
                };
                answered.commit = answered.commit.max(commit);
                answered.generation = answered.generation.max(entry.generation);
                answered.entries.push(entry);
            }
        }
        answered.entries.sort_unstable_by_key(|entry| (entry.key, std::cmp::Reverse(entry.generation)));
        answered.entries.dedup_by_key(|entry| entry.key);
        answered
    }

    /// Makes the log that of a cache whose next superblock is about to be written. What belongs to the cache stays until a
    /// commit makes it void.
    pub(super) fn begin(&self, found: &Superblock) {
        if self.whose(found) != Whose::Ours {
            self.set(0, 0);
            let partitions = found.partitions.len();
            for partition in 0..partitions {
                for parity in 0..2 {
                    let half = self.half(partitions, partition, parity);
                    self.set(half + COUNT, 0);
                    self.set_bits(half, 0);
                    self.set(half, 0);
                }
            }
            let [low, high] = halves(&found.uuid);
            let header = [low, high, 0, self.epoch[0], self.epoch[1], partitions as u64];
            header.into_iter().zip(UUID..).for_each(|(word, at)| self.set(at, word));
            self.set(SUM, self.header_sum());
        }
        self.set(SEQUENCE, summed(found.sequence + 1, 0));
        self.set(0, MAGIC);
    }

    /// What a partition stores its entries with.
    ///
    /// # Errors
    /// The memory is too small for requests that touch `most_blocks`.
    pub(super) fn writer(
        &self,
        partitions: usize,
        partition: usize,
        most_blocks: u32,
    ) -> Result<Writer, RecoveryError> {
        let capacity = u32::try_from(self.capacity(partitions)).unwrap_or(u32::MAX);
        if capacity / 2 < most_blocks {
            return Err(RecoveryError::MemoryLog { entries: capacity, needs: most_blocks.saturating_mul(2) });
        }
        let halves = [0, 1].map(|parity| self.half(partitions, partition, parity));
        Ok(Writer { log: self.clone(), halves, capacity, commit: 0, count: 0, commit_sum: sum_of(0) })
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

fn halves(uuid: &[u8; 16]) -> [u64; 2] {
    [u64_at(uuid, 0), u64_at(uuid, 8)]
}

/// The lower half of a word.
const LOW: u64 = u32::MAX as u64;

/// A number, of which the lower 32 bits count, with a sum of it and of what it goes with.
fn summed(number: u64, with: u64) -> u64 {
    summed_after(number, sum_of(with))
}

fn sum_of(with: u64) -> u32 {
    crc32c::crc32c(&with.to_le_bytes())
}

/// [`summed`] for many numbers that go with one: `with` is [`sum_of`] it.
fn summed_after(number: u64, with: u32) -> u64 {
    let number = number & LOW;
    number | u64::from(crc32c::crc32c_append(with, &number.to_le_bytes())) << 32
}

fn is_summed(word: u64, with: u64) -> bool {
    word == summed(word, with)
}

/// What lies in the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// A log was never made, or not to its end.
    Unused,
    /// This cache's.
    Ours,
    /// Another cache's, or of this one before power failed or before another process served it.
    Another,
    /// Not as anybody has written it.
    Damaged,
}

/// What a log has that the device has not.
#[derive(Default)]
pub(super) struct Answered {
    /// Some of it is lost.
    pub(super) damaged: bool,
    /// By key.
    pub(super) entries: Vec<Entry>,
    pub(super) commit: u64,
    pub(super) generation: u64,
}

/// One partition's way into the log.
#[derive(Debug)]
pub(super) struct Writer {
    log: MemoryLog,
    halves: [usize; 2],
    capacity: u32,
    /// The commit that writes what was stored last, and how many entries are stored for it.
    commit: u64,
    count: u32,
    /// [`sum_of`] the commit's number.
    commit_sum: u32,
}

impl Writer {
    /// Stores an entry that `commit` will write. It counts when this returns, and not before it is whole.
    pub(super) fn store(&mut self, commit: u64, bytes: &[u8; ENTRY_BYTES]) {
        let half = self.halves[usize::from(!commit.is_multiple_of(2))];
        if self.commit != commit {
            self.log.set(half + COUNT, 0);
            self.log.set(half, commit);
            (self.commit, self.count, self.commit_sum) = (commit, 0, sum_of(commit));
        }
        debug_assert!(self.count < self.capacity, "an entry without a place");
        let at = half + HALF_HEADER + self.count as usize * ENTRY_WORDS;
        let words = (*self.log.words).as_ref().get(at..at + ENTRY_WORDS);
        for (word, bytes) in words.into_iter().flatten().zip(bytes.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        self.count += 1;
        self.log.set(half + COUNT, summed_after(u64::from(self.count), self.commit_sum));
    }

    /// Disks of which writes past the cache are lost and no flush has told, and those of which some are not stable.
    pub(super) fn note_loss(&self, untold: u128, unsynced: u128) {
        self.log.set_bits(self.halves[0], untold);
        self.log.set_bits(self.halves[1], unsynced);
    }

    /// The first of these as this process, or an earlier one, has noted them last.
    pub(super) fn untold(&self) -> u128 {
        self.log.bits(self.halves[0])
    }

    /// Commit `stable` and those before it are on the device.
    pub(super) fn forget(&self, stable: u64) {
        for half in self.halves {
            if self.log.get(half) <= stable {
                self.log.set(half + COUNT, 0);
            }
        }
    }

    /// Entries that there is room for until `commit` begins.
    pub(super) const fn room(&self, commit: u64) -> u32 {
        if self.commit == commit { self.capacity.saturating_sub(self.count) } else { self.capacity }
    }

    /// Half of the room for `commit` is gone: it should begin.
    pub(super) const fn presses(&self, commit: u64) -> bool {
        self.room(commit) < self.capacity.div_ceil(2)
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        2 * (HALF_HEADER * 8 + self.capacity as usize * ENTRY_BYTES)
    }
}

/// Where the metadata of a cache lies that has been used before, by its superblocks (the first 8192 bytes): what an
/// [`Image`](super::Image) is to be read by, whatever is configured now.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn layout(superblocks: &[u8]) -> Result<Layout, RecoveryError> {
    newest(superblocks).map(|found| Layout::new(&found.partitions))
}

/// Which cache it is, by its superblocks.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn identity(superblocks: &[u8]) -> Result<[u8; 16], RecoveryError> {
    newest(superblocks).map(|found| found.uuid)
}

/// Which cache it is, and how often it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Number of the superblock that counts: it rises with every start.
    pub start: u64,
    /// The other superblock is torn or damaged: there may have been a newer one.
    pub is_single: bool,
}

/// The same with the number of starts, by its superblocks.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn origin(superblocks: &[u8]) -> Result<Origin, RecoveryError> {
    let found = newest(superblocks)?;
    let whole = superblocks.chunks_exact(4096).filter_map(Superblock::decode).count();
    Ok(Origin { uuid: found.uuid, start: found.sequence, is_single: whole < 2 })
}

/// What the superblocks say of a cache that has been used before.
pub(super) fn newest(superblocks: &[u8]) -> Result<Superblock, RecoveryError> {
    let copies = superblocks.chunks_exact(4096).filter_map(Superblock::decode);
    copies.max_by_key(|copy| copy.sequence).ok_or(RecoveryError::NoSuperblock)
}

/// Why a cache cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// Neither superblock is whole.
    #[error(
        "the fast device holds no cache: format it first, or begin one for the disks with `virtbench fence drain`"
    )]
    NoSuperblock,
    /// Nothing would be lost.
    #[error(
        "the cache was made for other disks or partitions and holds nothing unwritten: `virtbench fence drain` makes it anew"
    )]
    NeedsFormat,
    /// A disk has unwritten blocks in the cache and is not configured in its place.
    #[error(
        "the cache holds {dirty_blocks} unwritten blocks of disk {disk} (identity {expected:02x?}), {}: \
         configure that disk in its place to write them back", found.map_or_else(|| "which is missing".into(), |found| format!("where there now is {found:02x?}"))
    )]
    DirtyDisk {
        /// Its place.
        disk: usize,
        /// Its identity.
        expected: [u8; 16],
        /// The identity of the disk configured in that place.
        found: Option<[u8; 16]>,
        /// What would be lost.
        dirty_blocks: u32,
    },
    /// The partitions are not what they were.
    #[error(
        "the cache has unwritten blocks and partitions of {was:?} blocks: configure these to write them back"
    )]
    DirtyPartitions {
        /// Blocks of each partition.
        was: Vec<u32>,
    },
    /// The longest requests could fill it.
    #[error("the memory log has room for {entries} entries, requests of this length need {needs}")]
    MemoryLog {
        /// Of a half.
        entries: u32,
        /// Of a half.
        needs: u32,
    },
    /// An entry is lost: what it named would be given in an older version.
    #[error(
        "{fault}{}: see `virtbench fence inspect`; a forced `virtbench fence drain` brings to the disks what can still be read, and names the rest",
        if *more > 0 { format!(", and {more} faults more") } else { String::new() }
    )]
    Damaged {
        /// The first of what was found.
        fault: Fault,
        /// Faults beyond it.
        more: u64,
    },
    /// Less was read than the layout says.
    #[error("the image has not all of the cache's metadata: read what the layout names")]
    Truncated,
}
