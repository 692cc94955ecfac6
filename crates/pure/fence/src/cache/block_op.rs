//! An operation on a block: what it is on, and what it does next.

use super::table::NONE;
use crate::config::BLOCK_BYTES;
use crate::types::{BufferId, Data};

/// A range of bytes from somewhere in a block on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) within: u32,
    pub(super) len_bytes: u32,
}

impl Part {
    pub(super) const WHOLE: Self = Self { within: 0, len_bytes: 4096 };
}

/// What an operation does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Reads a cached block for a guest.
    Hit,
    /// Reads uncached blocks for a guest; `next` leads to the fills.
    Miss,
    /// Puts a block that was missed into the cache.
    Fill,
    /// Reads the rest of a block of which a guest writes a part.
    Load,
    /// The same from the slow device.
    LoadSlow,
    /// Writes a block into the cache.
    Store,
    /// Reads a dirty block to be written back, then writes it.
    BackRead,
    BackWrite,
    /// Has the slow device discard a run, then make that stable.
    Trim,
    TrimSync,
    /// Writes a run past the cache; has the slow device make what was written so stable.
    Past,
    PastSync,
}

/// One operation on one block, or the read of a run of missed blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockOp {
    pub(super) step: Phase,
    pub(super) request: u32,
    pub(super) write: bool,
    pub(super) key: u64,
    pub(super) buffer: BufferId,
    /// Where in the guest's buffer.
    pub(super) at_bytes: u32,
    /// Where in the block, and how much.
    pub(super) within: u32,
    pub(super) len_bytes: u32,
    /// The block it fills or reads, the one it takes the place of, scratch.
    pub(super) block: u32,
    pub(super) old: u32,
    pub(super) scratch: u32,
    /// The next fill of a run, or for one past the cache the epoch in which its write began; blocks of the run, or for a
    /// block written back that epoch.
    pub(super) next: u32,
    pub(super) run: u32,
}

/// Missed blocks in a row, before they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) op: BlockOp,
    /// The last of its fills, or [`NONE`].
    pub(super) last: u32,
}

impl Run {
    /// A run that begins with the block of `op` and has none yet.
    pub(super) const fn new(op: BlockOp) -> Self {
        Self { op: BlockOp { run: 0, len_bytes: 0, ..op }, last: NONE }
    }
}

impl BlockOp {
    /// One that is no guest's, of no block of the cache yet.
    pub(super) const fn own(step: Phase, key: u64) -> Self {
        Self {
            step,
            request: NONE,
            write: false,
            key,
            buffer: BufferId(0),
            at_bytes: 0,
            within: 0,
            len_bytes: 0,
            block: NONE,
            old: NONE,
            scratch: NONE,
            next: NONE,
            run: 0,
        }
    }

    pub(super) const fn guest(&self) -> Data {
        Data::Guest { buffer: self.buffer, at_bytes: self.at_bytes }
    }

    pub(super) const fn scratch(&self) -> Data {
        Data::Scratch { block: self.scratch, at_bytes: 0 }
    }

    pub(super) const fn part(&self) -> Part {
        Part { within: self.within, len_bytes: self.len_bytes }
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.len_bytes as u64 == BLOCK_BYTES
    }
}

pub(super) const WHOLE: u32 = Part::WHOLE.len_bytes;
