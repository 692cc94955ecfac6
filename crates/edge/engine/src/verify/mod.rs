//! Verification: what was written is what is read.
//!
//! ```text
//! write: claim -> fill (judge.rs: seed, offset, version, checksum in each sector) -> acknowledged: note the version
//! read:  claim -> judge (against the version noted in ledger.rs) -> release
//! end:   a flush, then check_region reads everything once more (both pass.rs)
//! later: --verify-only reads the ledger that was kept (sidecar.rs), then the region
//! ```
//!
//! While an operation is in flight on a block, no other may start there: what a racing read should
//! find would be anybody's guess, and a false alarm is worse than a check left out.

mod judge;
mod ledger;
mod pass;
mod sidecar;

use std::sync::Arc;

use virtbench_record::Verification;
use virtbench_workload::{Direction, Op};

pub(crate) use judge::Moment;
pub(crate) use ledger::{Ledger, block_count};
pub(crate) use pass::{CheckRegion, FinalFlush, chunk_bytes};
pub use sidecar::LedgerError;
pub(crate) use sidecar::{Sidecar, begin, load};

use judge::judge;
use ledger::Flushes;

/// One worker's part in verification.
pub(crate) struct Verifier {
    ledger: Arc<Ledger>,
    found: Verification,
    flushes: Flushes,
}

impl Verifier {
    /// A verifier that shares `ledger` with the other workers.
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        let found = Verification { block_bytes: ledger.block_bytes(), ..Verification::default() };
        Self { ledger, found, flushes: Flushes::default() }
    }

    /// Reserves the operation's blocks; `false` where another operation is in flight on one.
    pub(crate) fn claim(&mut self, op: Op) -> bool {
        if op.direction == Direction::Flush {
            self.flushes.issue(&self.ledger);
            return true;
        }
        self.ledger.claim(op.offset, op.len)
    }

    /// Gives a write that was granted its contents.
    pub(crate) fn fill(&self, op: Op, buffer: &mut [u8]) {
        let block_bytes = usize::try_from(self.ledger.block_bytes()).unwrap_or(usize::MAX);
        let mut offset = op.offset;
        for block in buffer[..op.len as usize].chunks_mut(block_bytes) {
            judge::fill(block, self.ledger.seed(), offset, self.ledger.next_version(offset));
            offset += block.len() as u64;
        }
    }

    /// Judges what a read returned, notes what a write left, and releases the blocks.
    pub(crate) fn completed(&mut self, op: Op, succeeded: bool, buffer: &[u8]) {
        match op.direction {
            Direction::Read => {
                if succeeded {
                    let data = &buffer[..op.len as usize];
                    judge(data, op.offset, &self.ledger, Moment::During, &mut self.found);
                }
                self.ledger.release(op.offset, op.len);
            }
            Direction::Write if succeeded => self.ledger.written(op.offset, op.len),
            Direction::Write => self.ledger.failed(op.offset, op.len),
            Direction::Trim => self.ledger.trimmed(op.offset, op.len),
            Direction::Flush => self.flushes.completed(&self.ledger, succeeded),
        }
    }

    /// What was found.
    pub(crate) fn finish(self) -> Verification {
        self.found
    }
}
