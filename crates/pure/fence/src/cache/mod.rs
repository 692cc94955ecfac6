//! The fast device as a persistent write-back cache of the slow one ([VirtualFence 2013], sections 6.1 and 6.2).
//!
//! Each partition stands alone: its blocks, lists, log, waiting requests and memory are its own, and what it queues is
//! paid for by the disk concerned. Rules that keep the crash contract:
//!
//! - A write goes to a free block, never over a block that an entry on the device may name.
//! - A commit makes data stable, then writes entries, then makes these stable; FLUSH is answered after a commit.
//! - An older version is retired only by a commit after the one that made the newer stable.
//! - A dirty block is written to the slow device once its entry is stable: so no entry says of an older version that the
//!   slow device has the same.
//! - It is retired after it is stable on the slow device, by a commit at least one later than that which may
//!   retire what it replaced: so no older version can come back to life.
//! - A retired block is free once its tombstone is stable and no read of it is in flight.
//! - A write is answered once its entry is in the [`MemoryLog`], if there is one: it survives the process, flushed or not.
//! - A write of a long stream may go past the cache, by the rules of `bypass.rs`.

mod block_op;
mod blocks;
mod bypass;
mod bypass_state;
mod commit;
mod commit_state;
mod evict;
mod faults;
mod inspect;
mod memory_log;
mod metadata;
mod reads;
mod recovery;
mod retry;
mod table;
mod trim;
mod validate;

pub use crate::config::{BLOCK_BYTES, CacheConfig, CachePartitions};
pub use faults::Fault;
pub use inspect::{Inspection, LiveBlock, PartitionState, inspect};
pub use memory_log::{MemoryLog, Origin, RecoveryError, identity, layout, origin};
pub use metadata::{Layout, PartitionLayout};
pub use recovery::{Image, Write, format, resized};
pub(crate) use recovery::{Recovered, recover};

use std::collections::VecDeque;

use crate::config::Config;
use crate::ports::{NewIo, Owner, Ports};
use crate::slab::Slab;
use crate::types::{Data, Device, DeviceOp, DiskId, IoError, Op, Request, Time};
use block_op::{BlockOp, Part};
use bypass_state::Bypass;
use commit_state::{Commit, Trim, WriteBack};
use memory_log::Writer;
use metadata::Identity;
use table::Table;

/// One partition of the cache.
#[derive(Debug)]
pub(crate) struct Partition {
    id: u32,
    identity: Identity,
    layout: PartitionLayout,
    /// Where each disk begins on the slow device.
    disk_offsets: Vec<u64>,
    free_target: u32,
    low_watermark: u32,
    table: Table,
    next_generation: u64,
    ops: Slab<BlockOp>,
    scratch_free: Vec<u32>,
    scratch_blocks: u32,
    /// Scratch that fills have: at most half of it.
    filling: u32,
    /// Operations that wait for scratch, and for a locked block.
    scratch_waiters: VecDeque<u32>,
    key_waiters: VecDeque<(u32, u32)>,
    restart: Vec<u32>,
    /// Requests that wait for free blocks.
    halted: VecDeque<(u32, Request)>,
    /// Free blocks promised to writes that have been let in.
    reserved: u32,
    /// Blocks on their way to the free list.
    retiring: u32,
    commit: Commit,
    /// Where entries are kept that no commit has written yet.
    memory: Option<Writer>,
    write_back: WriteBack,
    /// Just recovered: what was found is made stable before anybody may see it.
    settling: bool,
    /// The metadata can no longer be kept: writes and flushes fail, reads go on.
    broken: Option<IoError>,
    /// What its log said cannot be believed: nothing is read or written.
    sealed: bool,
    /// Failures of devices that were tried again.
    errors: u64,
    /// Trims that are not answered, and how many there were.
    trims: Vec<Trim>,
    trims_begun: u64,
    bypass: Bypass,
}

impl Partition {
    /// The partitions of a valid configuration, empty.
    pub(crate) fn all(config: &Config, cache: &CacheConfig) -> Vec<Self> {
        let layout = Layout::new(cache.partitions.blocks());
        let new = |(id, layout): (u32, &PartitionLayout)| {
            Self::new(config, cache, id, *layout, Table::new(layout.blocks))
        };
        (0..).zip(&layout.partitions).map(new).collect()
    }

    fn new(config: &Config, cache: &CacheConfig, id: u32, layout: PartitionLayout, table: Table) -> Self {
        let first_scratch = id * cache.scratch_blocks;
        Self {
            id,
            identity: Identity::new(&cache.uuid),
            layout,
            disk_offsets: config.disks.iter().map(|disk| disk.offset_bytes).collect(),
            free_target: cache.free_target,
            low_watermark: cache.low_watermark,
            table,
            next_generation: 1,
            ops: Slab::new(),
            scratch_free: (first_scratch..first_scratch + cache.scratch_blocks).rev().collect(),
            scratch_blocks: cache.scratch_blocks,
            filling: 0,
            scratch_waiters: VecDeque::new(),
            key_waiters: VecDeque::new(),
            restart: Vec::new(),
            halted: VecDeque::new(),
            reserved: 0,
            retiring: 0,
            commit: Commit::default(),
            memory: None,
            write_back: WriteBack::default(),
            settling: false,
            broken: None,
            sealed: false,
            errors: 0,
            trims: Vec::new(),
            trims_begun: 0,
            bypass: Bypass::new(config, cache),
        }
    }

    /// A partition that answers nothing and leaves everything as it is.
    fn sealed(config: &Config, cache: &CacheConfig, id: u32, layout: PartitionLayout) -> Self {
        let mut partition = Self::new(config, cache, id, layout, Table::new(0));
        partition.sealed = true;
        partition.broken = Some(IoError::Corrupt);
        partition
    }

    pub(crate) const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Takes a checked request.
    pub(crate) fn submit(&mut self, now: Time, request: Request, ports: &mut Ports) {
        if self.sealed {
            return ports.refuse(request.id, IoError::Corrupt);
        }
        self.commit.charge(request.disk);
        match request.op {
            Op::Flush => self.submit_flush(now, request.id, request.disk, ports),
            Op::Discard => self.trim(&request, ports),
            Op::Read | Op::Write => {
                let index = ports.begin_request(request.id, blocks_of(&request));
                let passes = request.op == Op::Read && self.write_back.trouble.is_some() && !self.settling;
                if passes || self.halted.is_empty() && self.admits(&request) {
                    self.admit(now, index, request, ports);
                } else {
                    self.halted.push_back((index, request));
                }
            }
        }
        self.maintain(now, ports);
    }

    /// An I/O of this partition has completed.
    pub(crate) fn on_io(
        &mut self,
        now: Time,
        owner: Owner,
        result: Result<(), IoError>,
        crc: u32,
        ports: &mut Ports,
    ) {
        match owner {
            Owner::Block { op, .. } => self.on_block(now, op, result, crc, ports),
            Owner::Commit { .. } => self.on_commit(now, result, ports),
            Owner::WriteBackSync { .. } => self.on_write_back_sync(now, result, ports),
            Owner::Request(_) => debug_assert!(false, "not an I/O of the cache"),
        }
        self.maintain(now, ports);
    }

    /// Memory of what is known of the blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.memory.as_ref().map_or(0, Writer::memory_bytes)
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts {
            blocks: self.table.len(),
            free: self.table.free.len(),
            used: self.table.lru.len(),
            writing: self.table.writing.len(),
            retiring: self.retiring,
            halted: self.halted.len(),
            hits: self.commit.hits,
            misses: self.commit.misses,
            read_only: self.refusal(true).is_some(),
            failing: self.write_back.trouble.is_some() || self.commit.trouble.is_some(),
            sealed: self.sealed,
            errors: self.errors,
        }
    }

    /// Restores the invariants after an event: blocks are freed, metadata is committed, halted requests are let in.
    fn maintain(&mut self, now: Time, ports: &mut Ports) {
        self.evict(now, ports);
        self.commit_if_due(now, ports);
        while let Some((_, request)) = self.halted.front()
            && (self.admits(request) || self.refusal(false).is_some())
            && let Some((index, request)) = self.halted.pop_front()
        {
            self.admit(now, index, request, ports);
        }
    }

    fn admits(&self, request: &Request) -> bool {
        let available = self.table.free.len().saturating_sub(self.reserved);
        let needs = if request.op == Op::Write { blocks_of(request) } else { 0 };
        !self.settling && available > self.low_watermark && available >= needs && self.has_room(needs)
    }

    /// Every write in flight, and so many blocks more, can store their entries.
    fn has_room(&self, blocks: u32) -> bool {
        let room = |memory: &Writer| memory.room(self.commit.next()) as usize;
        self.memory.as_ref().is_none_or(|memory| room(memory) >= self.ops.len() + blocks as usize)
    }

    /// On a whole block, whose data has a checksum.
    fn fast_io(&self, owner: Owner, disk: u16, op: DeviceOp, block: u32, data: Data) -> NewIo {
        NewIo {
            owner,
            disk: DiskId(disk),
            device: Device::Fast,
            op,
            offset_bytes: self.layout.data_offset_bytes + u64::from(block) * BLOCK_BYTES,
            len_bytes: Part::WHOLE.len_bytes,
            data,
            wants_crc: true,
        }
    }

    fn slow_io(&self, owner: Owner, key: u64, op: DeviceOp, part: Part, data: Data) -> NewIo {
        let Part { within, len_bytes } = part;
        let disk = table::disk_of(key);
        let begins = self.disk_offsets[usize::from(disk)];
        let offset_bytes = begins + table::block_of(key) * BLOCK_BYTES + u64::from(within);
        NewIo {
            owner,
            disk: DiskId(disk),
            device: Device::Slow,
            op,
            offset_bytes,
            len_bytes,
            data,
            wants_crc: false,
        }
    }

    /// To the free list, now or when the last read of it is done.
    fn free(&mut self, block: u32) {
        self.table.clear(block, table::PENDING | table::ON_LOG);
        if self.table.is_pinned(block) {
            self.table.set_state(block, table::State::Retired);
            self.table.set(block, table::FREE_ON_UNPIN);
            self.retiring += 1;
        } else {
            self.table.release(block);
        }
    }

    fn unpin(&mut self, block: u32) {
        self.table.unpin(block);
        if self.table.has(block, table::FREE_ON_UNPIN) && !self.table.is_pinned(block) {
            self.retiring -= 1;
            self.table.release(block);
        }
    }
}

/// How the blocks of a partition stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// All there are.
    pub blocks: u32,
    /// On the free list.
    pub free: u32,
    /// On the LRU list, clean or dirty.
    pub used: u32,
    /// On the write list.
    pub writing: u32,
    /// On their way to the free list.
    pub retiring: u32,
    /// Requests that wait for free blocks.
    pub halted: usize,
    /// Blocks read from the cache so far.
    pub hits: u64,
    /// Blocks read from the slow device so far.
    pub misses: u64,
    /// The fast device failed, at a sync for good, or for long at the log: writes and flushes are refused, reads go on.
    pub read_only: bool,
    /// A device fails and is tried again. What the cache alone has stays in it; writes are refused once there is no room.
    pub failing: bool,
    /// Its log cannot be believed: every request is refused.
    pub sealed: bool,
    /// Failures of devices that were tried again, so far.
    pub errors: u64,
}

/// Cache blocks that a read or write touches.
#[allow(clippy::cast_possible_truncation)] // requests are shorter than 1 GiB
fn blocks_of(request: &Request) -> u32 {
    let end = request.offset_bytes + u64::from(request.len_bytes);
    (end.div_ceil(BLOCK_BYTES) - request.offset_bytes / BLOCK_BYTES) as u32
}
