//! From the metadata on the fast device to the state of the cache: bytes in, partitions out.

use std::borrow::Cow;

use super::faults::{End, Fault, Faults, check_log, check_superblocks};
use super::memory_log::{MemoryLog, RecoveryError, newest};
use super::metadata::{
    ENTRY_BYTES, Entry, Identity, Kind, Layout, PartitionLayout, Superblock, is_of_earlier_version, repaired,
};
use super::table::{self, ON_LOG, PENDING, State, Table};
use super::{CacheConfig, Partition};
use crate::config::Config;

/// A log block in which there are no entries.
const NEVER_WRITTEN: [u8; 4096] = [0; 4096];

/// Bytes to be written to the fast device, and synced, before a fence serves anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where it begins on the fast device, in bytes.
    pub offset_bytes: u64,
    /// What is written there.
    pub bytes: Vec<u8>,
}

/// What was read from the fast device, and what is in memory.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a, L = Vec<u8>> {
    /// The first 8192 bytes.
    pub superblocks: &'a [u8],
    /// The log of each partition, at the place and of the length that [`Layout`] says.
    pub logs: &'a [L],
    /// What an earlier process may have left, and what a fence recovered from this goes on with.
    pub memory: Option<&'a MemoryLog>,
}

/// What makes the fast device an empty cache. Older entries on it are void, because the identity is new.
#[must_use]
pub fn format(config: &Config, cache: &CacheConfig) -> Vec<Write> {
    let superblock = |sequence| {
        let superblock = Superblock::new(sequence, cache.uuid, &config.disks, cache.partitions.blocks());
        Write { offset_bytes: superblock.offset_bytes(), bytes: superblock.encode() }
    };
    vec![superblock(0), superblock(1)]
}

/// The superblock that makes a cache that of `config`, which has other sizes of disks or partitions: one write, before
/// which the cache is the old one and after which it is the new. With the identity that the cache has, its blocks are
/// kept, and its partitions must be as they were; with another, given in `cache`, it is empty, and everything in it must be
/// on the slow device already.
///
/// # Errors
/// There is no cache, or blocks would be kept that no longer lie where they did.
pub fn resized(config: &Config, cache: &CacheConfig, superblocks: &[u8]) -> Result<Write, RecoveryError> {
    let found = newest(superblocks)?;
    let partitions = cache.partitions.blocks();
    if cache.uuid == found.uuid && found.partitions != partitions {
        return Err(RecoveryError::NeedsFormat);
    }
    let next = Superblock::new(found.sequence + 1, cache.uuid, &config.disks, partitions);
    Ok(Write { offset_bytes: next.offset_bytes(), bytes: next.encode() })
}

/// The partitions as the image has them, and what says so: log blocks that were repaired, of logs with nothing in them the
/// beginning, then the superblock, each to be stable before the next. A partition that cannot be believed is sealed, as
/// long as there are others.
pub(crate) fn recover<L: AsRef<[u8]>>(
    config: &Config,
    cache: &CacheConfig,
    image: &Image<'_, L>,
) -> Result<Recovered, RecoveryError> {
    let found = newest(image.superblocks)?;
    let layout = Layout::new(&found.partitions);
    let mut faults = Faults::default();
    check_superblocks(image.superblocks, &mut faults);
    let logs = read_logs(&found, &layout, image, &mut faults)?;
    if let Some(&fault) = faults.told.first()
        && (0..logs.len()).all(|partition| faults.concern(partition))
    {
        return Err(RecoveryError::Damaged { fault, more: faults.told.len() as u64 - 1 + faults.more });
    }
    check(config, cache, &found, &logs).map_err(|error| match faults.told.first() {
        // What a damaged log holds is unknown.
        Some(&fault) => RecoveryError::Damaged { fault, more: faults.told.len() as u64 - 1 + faults.more },
        None => error,
    })?;
    let cache = CacheConfig { uuid: found.uuid, ..cache.clone() };
    let mut writes = Vec::new();
    // Tables are large: each is made once.
    let resumed = |((id, place), log): ((u32, &PartitionLayout), Log)| {
        let Log { table, retire_again, superseded, pending, next_generation, end, repaired } = log;
        if faults.concern(id as usize) {
            return Partition::sealed(config, &cache, id, *place);
        }
        writes.extend(repaired.into_iter().map(|(log_block, bytes)| Write {
            offset_bytes: place.log_offset_bytes + log_block as u64 * 4096,
            bytes,
        }));
        let mut partition = Partition::new(config, &cache, id, *place, table);
        partition.resume(Found { retire_again, superseded, pending, next_generation, end });
        partition
    };
    let mut partitions: Vec<Partition> = (0..).zip(&layout.partitions).zip(logs).map(resumed).collect();
    if let Some(memory) = image.memory {
        let (count, most_blocks) = (partitions.len(), config.max_request_bytes / 4096 + 1);
        for (index, partition) in partitions.iter_mut().enumerate().filter(|(_, part)| !part.is_sealed()) {
            partition.memory = Some(memory.writer(count, index, most_blocks)?);
        }
        memory.begin(&found);
        partitions.iter_mut().for_each(Partition::remember_loss);
    }
    writes.extend(partitions.iter_mut().filter_map(Partition::begin_log));
    let begun = found.begun || partitions.iter().all(Partition::has_log);
    let next = Superblock { sequence: found.sequence + 1, begun, ..found };
    writes.push(Write { offset_bytes: next.offset_bytes(), bytes: next.encode() });
    writes.extend(older_of_this_version(&next, image.superblocks));
    Ok(Recovered { partitions, writes, faults: faults.told })
}

/// Partitions as an image has them, and what to write before they serve.
pub(crate) struct Recovered {
    pub(crate) partitions: Vec<Partition>,
    pub(crate) writes: Vec<Write>,
    /// Of partitions that are not served.
    pub(crate) faults: Vec<Fault>,
}

/// The superblock before `next` once more, where it is of an earlier version, which would take it for the newest: that
/// version reads the log otherwise.
fn older_of_this_version(next: &Superblock, superblocks: &[u8]) -> Option<Write> {
    let found = newest(superblocks).ok()?;
    let is_earlier = superblocks.chunks_exact(4096).any(is_of_earlier_version);
    let again = Superblock { sequence: next.sequence - 1, ..found };
    is_earlier.then(|| Write { offset_bytes: again.offset_bytes(), bytes: again.encode() })
}

/// The logs of an image, and what is wrong with them.
pub(super) fn read_logs<L: AsRef<[u8]>>(
    found: &Superblock,
    layout: &Layout,
    image: &Image<'_, L>,
    faults: &mut Faults,
) -> Result<Vec<Log>, RecoveryError> {
    let mut logs = Vec::new();
    for (index, place) in layout.partitions.iter().enumerate() {
        let bytes = image.logs.get(index).ok_or(RecoveryError::Truncated)?.as_ref();
        if bytes.len() as u64 != u64::from(place.log_blocks) * 4096 {
            return Err(RecoveryError::Truncated);
        }
        logs.push(read_log(found, (index, place), bytes, image.memory, faults));
    }
    Ok(logs)
}

/// The log of one partition; a bit that has flipped in it is flipped back.
fn read_log(
    found: &Superblock,
    (index, place): (usize, &PartitionLayout),
    bytes: &[u8],
    memory: Option<&MemoryLog>,
    faults: &mut Faults,
) -> Log {
    let identity = Identity::new(&found.uuid);
    let mut end = End::find(identity, bytes);
    let repaired = repaired(identity, bytes, &end.headers);
    let mut whole = Cow::Borrowed(bytes);
    for (log_block, block) in &repaired {
        whole.to_mut()[log_block * 4096..(log_block + 1) * 4096].copy_from_slice(block);
    }
    if !repaired.is_empty() {
        end = End::find(identity, &whole);
    }
    let mut log = Log::read(found, (index, place.blocks), (&whole, end), memory, faults);
    check_log(found, index, place, &log.end, &whole, faults);
    log.repaired = repaired;
    log
}

/// Refuses what would lose or mix up unwritten blocks.
fn check(
    config: &Config,
    cache: &CacheConfig,
    found: &Superblock,
    logs: &[Log],
) -> Result<(), RecoveryError> {
    let wanted = Superblock::new(0, found.uuid, &config.disks, cache.partitions.blocks());
    if wanted.disks == found.disks && wanted.partitions == found.partitions {
        return Ok(());
    }
    let mut dirty = vec![0u32; found.disks.len()];
    for (disk, count) in dirty.iter_mut().enumerate() {
        *count = logs.iter().map(|log| log.dirty_of(disk)).sum();
    }
    for (disk, &dirty_blocks) in dirty.iter().enumerate() {
        if dirty_blocks > 0 && wanted.disks.get(disk) != Some(&found.disks[disk]) {
            let (expected, found_disk) = (found.disks[disk].0, wanted.disks.get(disk).map(|disk| disk.0));
            return Err(RecoveryError::DirtyDisk { disk, expected, found: found_disk, dirty_blocks });
        }
    }
    if dirty.iter().any(|&blocks| blocks > 0) {
        return Err(RecoveryError::DirtyPartitions { was: found.partitions.clone() });
    }
    Err(RecoveryError::NeedsFormat)
}

/// What a partition's log says.
pub(super) struct Log {
    pub(super) table: Table,
    /// Blocks whose last entry retires them, but is not known to be stable.
    retire_again: Vec<u32>,
    /// Blocks that hold an older version.
    superseded: Vec<u32>,
    /// Live blocks whose entry is not known to be stable.
    pending: Vec<u32>,
    pub(super) next_generation: u64,
    pub(super) end: End,
    /// Log blocks of which a bit was flipped back, by their place.
    pub(super) repaired: Vec<(usize, Vec<u8>)>,
}

/// The newest entry of a data block so far.
#[derive(Clone, Copy)]
struct Newest {
    kind: Option<Kind>,
    stable: bool,
}

impl Log {
    /// By the log of partition `index`, and by what a killed process has left in memory.
    pub(super) fn read(
        found: &Superblock,
        (index, blocks): (usize, u32),
        (bytes, mut end): (&[u8], End),
        memory: Option<&MemoryLog>,
        faults: &mut Faults,
    ) -> Self {
        let mut table = Table::without_free(blocks);
        let mut newest = vec![Newest { kind: None, stable: false }; blocks as usize];
        let mut next_generation = 1;
        let fits = |entry: &Entry| {
            let disk = found.disks.get(usize::from(table::disk_of(entry.key)));
            entry.block < blocks && disk.is_some_and(|disk| table::block_of(entry.key) < disk.1 / 4096)
        };
        for (log_block, &complete) in bytes.chunks_exact(4096).zip(&end.whole) {
            // Most of a young log was never written: telling so is quicker than a sum for each entry.
            if *log_block == NEVER_WRITTEN {
                continue;
            }
            for entry in log_block.as_chunks::<ENTRY_BYTES>().0 {
                let Some(entry) = Entry::decode(Identity::new(&found.uuid), entry) else { continue };
                if !fits(&entry) {
                    let (disk, at_bytes) = (table::disk_of(entry.key), table::block_of(entry.key) * 4096);
                    faults.add(Fault::Stray { partition: index, block: entry.block, disk, at_bytes });
                    continue;
                }
                next_generation = next_generation.max(entry.generation + 1);
                let place = &mut newest[entry.block as usize];
                let known = table.generation(entry.block);
                if place.kind.is_none() || entry.generation > known {
                    *place = Newest { kind: Some(entry.kind), stable: complete };
                    table.describe(entry.block, entry.key, entry.generation, entry.data_crc);
                } else if entry.generation == known {
                    if (entry.key, entry.data_crc) != (table.key(entry.block), table.crc(entry.block)) {
                        let (block, generation) = (entry.block, known);
                        faults.add(Fault::Contradiction { partition: index, block, generation });
                    }
                    place.stable |= complete;
                    if entry.kind == Kind::Clean {
                        place.kind = Some(Kind::Clean);
                    }
                }
            }
        }
        if let Some(memory) = memory {
            // Their blocks hold what they say: no version but the newest of a key has lost its block to another.
            let answered = memory.read(found, index, end.stable);
            if answered.damaged {
                faults.add(Fault::Memory);
            }
            for entry in answered.entries.iter().filter(|entry| fits(entry)) {
                let place = &mut newest[entry.block as usize];
                if place.kind.is_none() || entry.generation > table.generation(entry.block) {
                    *place = Newest { kind: Some(entry.kind), stable: false };
                    table.describe(entry.block, entry.key, entry.generation, entry.data_crc);
                }
            }
            next_generation = next_generation.max(answered.generation + 1);
            end.newest = end.newest.max(answered.commit);
        }
        let mut log = Self {
            table,
            retire_again: Vec::new(),
            superseded: Vec::new(),
            pending: Vec::new(),
            next_generation,
            end,
            repaired: Vec::new(),
        };
        for (block, newest) in (0..blocks).zip(&newest) {
            log.place(block, *newest);
        }
        log
    }

    /// Gives a block its state. Of two that hold the same key the newer counts.
    fn place(&mut self, block: u32, newest: Newest) {
        let state = match newest.kind {
            None => return self.table.release(block),
            Some(Kind::Tombstone) if newest.stable => return self.table.release(block),
            Some(Kind::Tombstone) => {
                self.table.set_state(block, State::Retired);
                self.retire_again.push(block);
                return;
            }
            Some(Kind::Clean) => State::Clean,
            Some(Kind::Dirty) => State::Dirty,
        };
        self.table.set_state(block, state);
        self.table.set(block, ON_LOG);
        let key = self.table.key(block);
        if let Some(other) = self.table.find(key) {
            let older =
                if self.table.generation(other) < self.table.generation(block) { other } else { block };
            self.table.set_state(older, State::Superseded);
            self.table.clear(older, PENDING);
            self.superseded.push(older);
            if older == block {
                return;
            }
            self.table.unindex(other);
            self.table.remove_used(other);
        }
        self.table.insert(key, block);
        self.table.insert_used(block);
        if !newest.stable {
            self.table.set(block, PENDING);
            self.pending.push(block);
        }
    }

    fn dirty_of(&self, disk: usize) -> u32 {
        let dirty = |&block: &u32| {
            self.table.state(block) == State::Dirty
                && usize::from(table::disk_of(self.table.key(block))) == disk
        };
        u32::try_from((0..self.table.len()).filter(dirty).count()).unwrap_or(u32::MAX)
    }
}

/// The same without the table.
struct Found {
    retire_again: Vec<u32>,
    superseded: Vec<u32>,
    pending: Vec<u32>,
    next_generation: u64,
    end: End,
}

impl Partition {
    fn resume(&mut self, log: Found) {
        self.next_generation = log.next_generation;
        let retiring = log.superseded.len() + log.retire_again.len();
        self.retiring = u32::try_from(retiring).unwrap_or(u32::MAX);
        log.superseded
            .iter()
            .chain(&log.retire_again)
            .for_each(|&block| self.bypass.leaves(self.table.key(block)));
        self.settling = !log.pending.is_empty();
        self.commit.stable_generation = if self.settling { 0 } else { self.next_generation };
        self.commit.wanted = self.settling;
        self.commit.pending.extend(log.pending);
        // What has been replaced for certain is retired by the next commit, so that nothing evicted from now on can go
        // with it: of a torn commit the newer's tombstone alone might persist.
        if self.settling {
            self.commit.superseded = log.superseded;
        } else {
            log.superseded.iter().for_each(|&block| self.table.set_state(block, State::Retired));
            self.commit.tombstones = log.superseded;
        }
        self.commit.evicted = log.retire_again;
        self.commit.resume(log.end.head, log.end.stable, log.end.newest);
    }
}
