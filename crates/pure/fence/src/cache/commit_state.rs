//! The commit in progress, and what waits for the next.
//!
//! A device that fails: what it could not do is tried again, at first soon and then every two seconds. What waits for it
//! does so for ten seconds, then it is refused until the device does it.
//!
//! A write to the slow device, or to the log, can be tried again because what is to be written is still there. A sync of the
//! fast device cannot: what the device has kept of the data before it is unknown. After that the partition refuses
//! writes until a restart.

use std::collections::VecDeque;

use crate::types::{DiskId, IoError, Time};

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

/// A trim that is not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trim {
    pub(super) id: u64,
    pub(super) request: u32,
    /// Keys of its blocks.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The round of commits after which the slow device may discard them; none once it has been told to.
    pub(super) round: Option<u64>,
    /// I/Os in flight.
    pub(super) ios: u32,
}

const FIRST_NS: u64 = 50_000_000;

const MOST_NS: u64 = 2_000_000_000;

const PATIENCE_NS: u64 = 10_000_000_000;

/// Since when a device fails, and when it is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    since: Time,
    pub(super) error: IoError,
    delay_ns: u64,
    pub(super) retry_at: Time,
    /// For longer than requests wait.
    pub(super) is_long: bool,
}

impl Trouble {
    /// Another failure, or the first.
    pub(super) fn after(before: Option<Self>, now: Time, error: IoError) -> Self {
        match before {
            None => {
                let retry_at = now.after(FIRST_NS);
                Self { since: now, error, delay_ns: FIRST_NS, retry_at, is_long: false }
            }
            // Of several in flight, the first counts.
            Some(before) if now < before.retry_at => before,
            Some(before) => Self { error, ..before.later(now) },
        }
    }

    pub(super) fn later(self, now: Time) -> Self {
        let delay_ns = (self.delay_ns * 2).min(MOST_NS);
        let is_long = self.is_long || now.since(self.since) >= PATIENCE_NS;
        Self { delay_ns, retry_at: now.after(delay_ns), is_long, ..self }
    }
}

/// What is on its way to the slow device.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    pub(super) under_way: u32,
    pub(super) written: Vec<u32>,
    pub(super) syncing: Vec<u32>,
    /// Rises with every sync of the slow device that fails, of any partition: what was written before it may not have been kept.
    pub(super) epoch: u32,
    /// That of the sync under way when it began.
    pub(super) syncing_epoch: u32,
    /// The slow device takes nothing.
    pub(super) trouble: Option<Trouble>,
}
