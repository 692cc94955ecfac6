//! What a cache's metadata says, without starting anything: how blocks stand, and whether it can be believed.

use super::faults::{Fault, Faults, check_superblocks, check_versions};
use super::memory_log::{RecoveryError, newest};
use super::metadata::{Layout, Superblock};
use super::recovery::{Image, Log, read_logs};
use super::table::{self, State, Table};
use super::{BLOCK_BYTES, PartitionLayout};

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

/// The state of a partition that is not served.
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
    /// The disk that it belongs to.
    pub disk: u16,
    /// Where on that disk it belongs.
    pub disk_offset_bytes: u64,
    /// The slow device has an older version.
    pub dirty: bool,
    /// CRC-32C of its 4096 bytes.
    pub data_crc: u32,
}

/// Reads an image as recovery does. A start refuses every fault that is told here, but for blocks of one version, which
/// no damage leaves and which take long to look for.
///
/// # Errors
/// There is no cache, or less was read than its layout says.
pub fn inspect<L: AsRef<[u8]>>(image: &Image<'_, L>) -> Result<Inspection, RecoveryError> {
    let found = newest(image.superblocks)?;
    let mut faults = Faults::default();
    check_superblocks(image.superblocks, &mut faults);
    let layout = Layout::new(&found.partitions);
    let (mut partitions, mut tables) = (Vec::new(), Vec::new());
    for (index, (place, log)) in
        layout.partitions.iter().zip(read_logs(&found, &layout, image, &mut faults)?).enumerate()
    {
        check_versions(index, &log.table, &mut faults);
        partitions.push(state(&found, place, &log));
        tables.push(log.table);
    }
    let mut copies = image.superblocks.chunks_exact(4096).map(Superblock::decode);
    let pair = [copies.next().flatten(), copies.next().flatten()];
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
