//! Reading a whole region once, and judging every block of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_record::Verification;
use virtbench_workload::{Direction, LoadSpec, Op};

use super::judge::{Moment, judge, judge_alone};
use super::ledger::{Ledger, common_block_bytes};
use crate::backend::{Backend, Task};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::slots::{InFlight, Slots};

/// About how much is read at once, in bytes.
const CHUNK_BYTES: u64 = 128 << 10;

/// How often a waiting pass looks at its stop flag.
const NAP_NS: u64 = 50_000_000;

/// How much is read at once for this load, in bytes: whole blocks, and no more than the target takes
/// in a request. A load's own operations fit that, and are of at least a block.
pub(crate) fn chunk_bytes(spec: &LoadSpec, most_bytes: u64) -> u64 {
    let block_bytes = common_block_bytes(spec);
    block_bytes * (CHUNK_BYTES.min(most_bytes) / block_bytes).max(1)
}

/// Reads the region of a load. Each read is bounded by the load's time limit, and the pass ends with
/// the first that exceeds it or when it is told to stop; it is then not complete.
pub(crate) struct CheckRegion<'a> {
    pub spec: &'a LoadSpec,
    /// What is expected; without it blocks are judged by themselves.
    pub ledger: Option<Arc<Ledger>>,
    /// When its blocks are read, beside the load.
    pub moment: Moment,
    pub buffers: Buffers,
    pub slots: u32,
    /// How much is read at once, in bytes: see [`chunk_bytes`].
    pub chunk_bytes: u64,
    pub stop: &'a AtomicBool,
}

impl Task for CheckRegion<'_> {
    type Output = io::Result<Verification>;

    fn perform<B: Backend>(mut self, backend: &mut B) -> io::Result<Verification> {
        let block_bytes = common_block_bytes(self.spec);
        let end = self.spec.region_bytes / block_bytes * block_bytes;
        let mut found = Verification { block_bytes, complete: true, ..Verification::default() };
        let mut slots = Slots::new(self.slots);
        let mut completions = Vec::new();
        let mut next = 0;
        let mut last_ns = monotonic_ns();
        while next < end || !slots.is_idle() {
            while next < end {
                let Some(slot) = slots.take() else { break };
                let len = u32::try_from(self.chunk_bytes.min(end - next)).unwrap_or(u32::MAX);
                let op = Op { direction: Direction::Read, offset: next, len, line: 0 };
                slots.occupy(slot, InFlight { op, start_ns: last_ns, issued_ns: last_ns });
                backend.queue(slot, op, self.buffers.slot(slot as usize).as_mut_ptr());
                next += u64::from(len);
            }
            backend.drive(Some(monotonic_ns() + NAP_NS), &mut completions)?;
            let now_ns = monotonic_ns();
            if !completions.is_empty() {
                last_ns = now_ns;
            }
            for completion in completions.drain(..) {
                let op = slots.release(completion.slot).op;
                if u32::try_from(completion.result) == Ok(op.len) {
                    let data = &self.buffers.slot(completion.slot as usize)[..op.len as usize];
                    match &self.ledger {
                        Some(ledger) => judge(data, op.offset, ledger, self.moment, &mut found),
                        None => judge_alone(data, op.offset, self.spec.seed, block_bytes, &mut found),
                    }
                } else {
                    found.blocks_unknown += u64::from(op.len) / block_bytes;
                    found.complete = false;
                }
            }
            let stalled = now_ns.saturating_sub(last_ns) > self.spec.timeout_ns;
            if stalled || self.stop.load(Ordering::Relaxed) {
                found.complete = false;
                next = end;
            }
            if stalled {
                // The kernel may yet write into them.
                std::mem::forget(self.buffers);
                return Ok(found);
            }
        }
        Ok(found)
    }
}

/// How often the limit is looked at.
const FLUSH_NAP_NS: u64 = 50_000_000;

/// One flush, which may take so long. Answers whether it succeeded.
pub(crate) struct FinalFlush {
    pub buffers: Buffers,
    pub timeout_ns: u64,
}

impl Task for FinalFlush {
    type Output = io::Result<bool>;

    fn perform<B: Backend>(mut self, backend: &mut B) -> io::Result<bool> {
        let limit_ns = monotonic_ns() + self.timeout_ns;
        let mut completions = Vec::new();
        let op = Op { direction: Direction::Flush, offset: 0, len: 0, line: 0 };
        backend.queue(0, op, self.buffers.slot(0).as_mut_ptr());
        while completions.is_empty() && monotonic_ns() < limit_ns {
            backend.drive(Some(limit_ns.min(monotonic_ns() + FLUSH_NAP_NS)), &mut completions)?;
        }
        Ok(completions.first().is_some_and(|completion| completion.result == 0))
    }
}

#[cfg(test)]
mod tests {
    use virtbench_workload::{AccessLine, AccessSpec};

    use super::*;

    #[test]
    fn a_read_is_of_whole_blocks_and_no_longer_than_the_target_takes() {
        let chunk = |size, most_bytes| {
            let access = AccessSpec::single(AccessLine::new(size, 50.0, 100.0));
            chunk_bytes(&LoadSpec::new(access, 1 << 30), most_bytes)
        };
        assert_eq!(chunk(4096, u64::MAX), 128 << 10);
        assert_eq!(chunk(4096, 65536), 65536);
        assert_eq!(chunk(12288, 65536), 61440);
        assert_eq!(chunk(1 << 20, 1 << 20), 1 << 20);
    }
}
