//! The commit in progress, and what waits for the next.

use std::collections::VecDeque;

use super::trouble::Trouble;
use crate::types::{DiskId, IoError};

/// Where a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CommitStep {
    #[default]
    Idle,
    DataSync,
    Entries,
    EntrySync,
}

/// The commit in progress, and what waits for the next.
#[derive(Debug, Default)]
pub(super) struct Commit {
    pub(super) step: CommitStep,
    /// Who pays.
    pub(super) disk: u16,
    /// Blocks whose entries are to be written; void where the block is no longer [`PENDING`](super::table::PENDING).
    pub(super) pending: VecDeque<u32>,
    /// Older versions whose newer ones are not yet stable; those whose newer ones the running commit makes stable.
    pub(super) superseded: Vec<u32>,
    pub(super) superseded_now: Vec<u32>,
    /// Evicted since the last commit was built: not before the one after the next.
    pub(super) evicted: Vec<u32>,
    /// Blocks to be retired by the next commit, by the running one.
    pub(super) tombstones: Vec<u32>,
    pub(super) tombstones_now: Vec<u32>,
    /// Flush requests for the next commit, for the running one.
    pub(super) waiters: Vec<u32>,
    pub(super) waiters_now: Vec<u32>,
    /// The log blocks of the running commit.
    pub(super) bytes: Vec<u8>,
    /// The next log block to write, and the first of the running commit.
    pub(super) head: u32,
    pub(super) first: u32,
    /// New entries in the last log block.
    pub(super) new: u32,
    /// Number of the commit, and of the last that is stable.
    pub(super) number: u64,
    pub(super) stable: u64,
    /// Versions before these have their entries in a commit that is in progress, in one that is stable.
    pub(super) built_generation: u64,
    pub(super) stable_generation: u64,
    /// How often a commit was over, of nothing too.
    pub(super) rounds: u64,
    pub(super) ios: u32,
    /// The first error of these.
    pub(super) failed: Option<IoError>,
    /// Entries could not be written.
    pub(super) trouble: Option<Trouble>,
    /// An operation cannot go on without a commit.
    pub(super) wanted: bool,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl Commit {
    /// The log goes on at block `head` behind commit `stable`; numbers up to `number` are used up.
    pub(super) fn resume(&mut self, head: u32, stable: u64, number: u64) {
        self.head = head;
        self.stable = stable;
        self.number = number;
    }

    /// Number of the commit that will write what becomes pending now.
    pub(super) const fn next(&self) -> u64 {
        self.number + 1
    }

    /// Background commits are `disk`'s, while none is in progress.
    pub(super) fn charge(&mut self, disk: DiskId) {
        if self.step == CommitStep::Idle {
            self.disk = disk.0;
        }
    }

    pub(super) fn retiring(&self) -> usize {
        self.superseded.len() + self.evicted.len() + self.tombstones.len()
    }
}
