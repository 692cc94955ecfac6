//! What a cache's metadata says, without starting anything: how blocks stand, and whether it can be believed.
//!
//! Nothing that a power failure may leave is a fault: one superblock torn, a commit cut off, what lies ahead of the log's
//! head. The log's younger half has been repeated in full, so that an entry is lost only if a block of that half is
//! damaged; a fault is what should not be there whenever the power failed.

use thiserror::Error;

use super::metadata::{ENTRY_BYTES, Entry, Identity, Layout, LogHeader, Superblock};
use super::recovery::{Image, Log, RecoveryError, newest};
use super::table::{self, NONE, State, Table};
use super::{BLOCK_BYTES, PartitionLayout, metadata};

/// Faults that are told one by one; more are counted.
const MOST_FAULTS: usize = 100;

/// What a cache on a device is, and holds.
#[derive(Debug)]
pub struct Inspection {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Number of the superblock that counts: it rises with every start.
    pub sequence: u64,
    /// Which of the two superblocks are whole.
    pub superblocks: [bool; 2],
    /// Identity and size in bytes of each disk that it caches.
    pub disks: Vec<([u8; 16], u64)>,
    /// Each partition.
    pub partitions: Vec<PartitionState>,
    /// What should not be, at most a hundred.
    pub faults: Vec<Fault>,
    /// Faults beyond those.
    pub more_faults: u64,
    tables: Vec<Table>,
    layout: Layout,
}

impl Inspection {
    /// Blocks of a partition that hold data: clean and dirty ones, by their place.
    pub fn live(&self, partition: usize) -> impl Iterator<Item = LiveBlock> {
        let both = self.tables.get(partition).zip(self.layout.partitions.get(partition));
        both.into_iter().flat_map(|(table, place)| {
            let data = place.data_offset_bytes;
            (0..place.blocks).filter_map(move |block| {
                let dirty = match table.state(block) {
                    State::Clean => false,
                    State::Dirty => true,
                    _ => return None,
                };
                let key = table.key(block);
                Some(LiveBlock {
                    block,
                    fast_offset_bytes: data + u64::from(block) * BLOCK_BYTES,
                    disk: table::disk_of(key),
                    disk_offset_bytes: table::block_of(key) * BLOCK_BYTES,
                    dirty,
                    data_crc: table.crc(block),
                })
            })
        })
    }
}

/// How a partition stands that nobody serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// Data blocks.
    pub blocks: u32,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// The same as the slow device has.
    pub clean: u32,
    /// Newer than the slow device.
    pub dirty: u32,
    /// Nothing in them.
    pub free: u32,
    /// Older versions, and blocks given up whose entries are still to be retired.
    pub retiring: u32,
    /// Dirty blocks of each disk.
    pub dirty_by_disk: Vec<u32>,
    /// The number that the next version of a block will have.
    pub next_generation: u64,
    /// The last commit that was written whole, and the last of which anything was found.
    pub commit: [u64; 2],
}

/// A block of the cache that holds data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBlock {
    /// Which data block of its partition.
    pub block: u32,
    /// Where on the fast device it is.
    pub fast_offset_bytes: u64,
    /// Whose.
    pub disk: u16,
    /// Where on that disk it belongs.
    pub disk_offset_bytes: u64,
    /// The slow device has an older version.
    pub dirty: bool,
    /// CRC-32C of its 4096 bytes.
    pub data_crc: u32,
}

/// What no power failure leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// Two superblocks of one number that say different things.
    #[error("both superblocks have sequence {sequence} and say different things")]
    Superblocks {
        /// The number.
        sequence: u64,
    },
    /// A block of the log is not what was written there, in the half that every entry is in.
    #[error(
        "partition {partition}: block {log_block} of the log is damaged: a part of commit {commit} is lost"
    )]
    Log {
        /// Which partition.
        partition: usize,
        /// Which log block.
        log_block: u32,
        /// What should be there.
        commit: u64,
    },
    /// An entry of this cache that names what is not there.
    #[error(
        "partition {partition}: an entry says that block {block} holds byte {at_bytes} of disk {disk}: there is none"
    )]
    Stray {
        /// Which partition.
        partition: usize,
        /// The data block.
        block: u32,
        /// The disk.
        disk: u16,
        /// Where on it.
        at_bytes: u64,
    },
    /// Two entries of one version that say different things of a block.
    #[error("partition {partition}: two entries of version {generation} disagree about block {block}")]
    Contradiction {
        /// Which partition.
        partition: usize,
        /// The data block.
        block: u32,
        /// The version.
        generation: u64,
    },
    /// Two blocks of one version.
    #[error("partition {partition}: blocks {blocks:?} have the same version {generation}")]
    SameVersion {
        /// Which partition.
        partition: usize,
        /// The data blocks.
        blocks: [u32; 2],
        /// The version.
        generation: u64,
    },
}

#[derive(Default)]
struct Faults {
    told: Vec<Fault>,
    more: u64,
}

impl Faults {
    fn add(&mut self, fault: Fault) {
        if self.told.len() < MOST_FAULTS { self.told.push(fault) } else { self.more += 1 }
    }
}

/// Reads an image as recovery would, and looks for what recovery would pass over.
///
/// # Errors
/// There is no cache, or less was read than its layout says.
pub fn inspect<L: AsRef<[u8]>>(image: &Image<'_, L>) -> Result<Inspection, RecoveryError> {
    let found = newest(image.superblocks)?;
    let mut faults = Faults::default();
    let mut copies = image.superblocks.chunks_exact(4096).map(Superblock::decode);
    let pair = [copies.next().flatten(), copies.next().flatten()];
    if let [Some(first), Some(second)] = &pair
        && first.sequence == second.sequence
        && first != second
    {
        faults.add(Fault::Superblocks { sequence: first.sequence });
    }
    let layout = Layout::new(&found.partitions);
    let (mut partitions, mut tables) = (Vec::new(), Vec::new());
    for (index, place) in layout.partitions.iter().enumerate() {
        let bytes = image.logs.get(index).ok_or(RecoveryError::Truncated)?.as_ref();
        if bytes.len() as u64 != u64::from(place.log_blocks) * BLOCK_BYTES {
            return Err(RecoveryError::Truncated);
        }
        let log = Log::read(&found, index, place.blocks, bytes, image.memory);
        check_chain(&found, index, place, &log, bytes, &mut faults);
        check_entries(&found, index, place.blocks, &log, bytes, &mut faults);
        partitions.push(state(&found, place, &log));
        tables.push(log.table);
    }
    Ok(Inspection {
        uuid: found.uuid,
        sequence: found.sequence,
        superblocks: pair.map(|copy| copy.is_some()),
        disks: found.disks,
        partitions,
        faults: faults.told,
        more_faults: faults.more,
        tables,
        layout,
    })
}

fn state(found: &Superblock, place: &PartitionLayout, log: &Log) -> PartitionState {
    let mut state = PartitionState {
        blocks: place.blocks,
        log_blocks: place.log_blocks,
        clean: 0,
        dirty: 0,
        free: 0,
        retiring: 0,
        dirty_by_disk: vec![0; found.disks.len()],
        next_generation: log.next_generation,
        commit: [log.end.stable, log.end.newest],
    };
    for block in 0..place.blocks {
        match log.table.state(block) {
            State::Free => state.free += 1,
            State::Retired | State::Superseded | State::Loading => state.retiring += 1,
            State::Clean => state.clean += 1,
            State::Dirty => {
                state.dirty += 1;
                state.dirty_by_disk[usize::from(table::disk_of(log.table.key(block)))] += 1;
            }
        }
    }
    state
}

/// Goes back from the log's head, commit by commit, through the half in which everything has been repeated.
fn check_chain(
    found: &Superblock,
    partition: usize,
    place: &PartitionLayout,
    log: &Log,
    bytes: &[u8],
    faults: &mut Faults,
) {
    let identity = Identity::of(&found.uuid);
    let ring = place.log_blocks;
    let (mut commit, mut index) = (log.end.stable, None);
    for back in 1..=metadata::chunks(place.blocks) {
        if commit == 0 {
            return;
        }
        let log_block = (log.end.head + ring - back) % ring;
        let at = log_block as usize * 4096;
        let header = bytes.get(at..at + 4096).and_then(|block| LogHeader::open(identity, block));
        let fits = |header: &LogHeader| {
            header.commit == commit && header.index == index.unwrap_or(header.count.wrapping_sub(1))
        };
        let Some(header) = header.filter(fits) else {
            // What lies before it cannot be counted on any more, so that looking further tells nothing.
            return faults.add(Fault::Log { partition, log_block, commit });
        };
        index = header.index.checked_sub(1);
        if index.is_none() {
            commit = header.after;
        }
    }
}

fn check_entries(
    found: &Superblock,
    partition: usize,
    blocks: u32,
    log: &Log,
    bytes: &[u8],
    faults: &mut Faults,
) {
    let identity = Identity::of(&found.uuid);
    for entry in bytes.as_chunks::<ENTRY_BYTES>().0 {
        let Some(Entry { generation, key, block, data_crc, .. }) = Entry::decode(identity, entry) else {
            continue;
        };
        let (disk, at_bytes) = (table::disk_of(key), table::block_of(key) * BLOCK_BYTES);
        let there = found.disks.get(usize::from(disk)).is_some_and(|disk| at_bytes < disk.1);
        if block >= blocks || !there {
            faults.add(Fault::Stray { partition, block, disk, at_bytes });
            continue;
        }
        let same = generation == log.table.generation(block);
        if same && (key, data_crc) != (log.table.key(block), log.table.crc(block)) {
            faults.add(Fault::Contradiction { partition, block, generation });
        }
    }
    let version = |block: u32| (log.table.generation(block), block);
    let mut versions: Vec<(u64, u32)> =
        (0..blocks).map(version).filter(|(version, _)| *version > 0).collect();
    versions.sort_unstable();
    let mut before = (0, NONE);
    for (generation, block) in versions {
        if generation == before.0 {
            faults.add(Fault::SameVersion { partition, blocks: [before.1, block], generation });
        }
        before = (generation, block);
    }
}
