//! Which version of each block the target has acknowledged.

use std::sync::atomic::{AtomicU32, Ordering};

use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

/// The most memory the versions may take, in bytes; each block takes four.
const MAX_LEDGER_BYTES: u64 = 1 << 30;
/// An operation is under way on the block.
const BUSY: u32 = 1 << 31;
/// What the block holds is not known: a write to it failed, or it was trimmed.
const DOUBT: u32 = 1 << 30;
const VERSION: u32 = DOUBT - 1;

/// What should be on the target, shared by all workers of a load.
///
/// A word a block: two flags and the number of writes acknowledged, which starts again at 1 after
/// 2^30 of them. A block is the largest size that all operations start and end at multiples of.
#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    block_bytes: u64,
    blocks: Vec<AtomicU32>,
}

/// The largest size of which all operations of a load are multiples, in bytes.
pub(crate) fn common_block_bytes(spec: &LoadSpec) -> u64 {
    let sizes = spec.access.lines.iter().flat_map(|line| [line.size_bytes, line.align_bytes]);
    sizes.fold(0, greatest_common_divisor).max(1)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Ledger {
    /// The ledger of a load that begins, knowing nothing.
    ///
    /// # Errors
    /// The region has too many blocks; the message says which flag to change.
    pub(crate) fn new(spec: &LoadSpec) -> Result<Self, String> {
        let block_bytes = common_block_bytes(spec);
        let count = spec.region_bytes / block_bytes;
        if count * 4 > MAX_LEDGER_BYTES {
            return Err(format!(
                "--verify remembers a version of each of {count} blocks of {}, more than {} of them: lower --size or raise --bs and --align",
                format_bytes(block_bytes),
                format_bytes(MAX_LEDGER_BYTES)
            ));
        }
        let blocks = (0..count).map(|_| AtomicU32::new(0)).collect();
        Ok(Self { seed: spec.seed, block_bytes, blocks })
    }

    /// The seed in every header.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    #[allow(clippy::cast_possible_truncation)]
    fn range(&self, offset: u64, len: u32) -> &[AtomicU32] {
        let first = (offset / self.block_bytes) as usize;
        let count = (u64::from(len) / self.block_bytes) as usize;
        self.blocks.get(first..first + count).unwrap_or_default()
    }

    /// Reserves blocks that nobody else has.
    pub(crate) fn claim(&self, offset: u64, len: u32) -> bool {
        let blocks = self.range(offset, len);
        let taken = blocks.iter().position(|block| block.fetch_or(BUSY, Ordering::Acquire) & BUSY != 0);
        if let Some(taken) = taken {
            free(&blocks[..taken]);
        }
        taken.is_none()
    }

    /// Gives up a reservation that changed nothing.
    pub(crate) fn release(&self, offset: u64, len: u32) {
        free(self.range(offset, len));
    }

    /// The version that a write to the block at `offset` carries.
    pub(crate) fn next_version(&self, offset: u64) -> u32 {
        self.range(offset, u32::try_from(self.block_bytes).unwrap_or(u32::MAX))
            .first()
            .map_or(1, |block| next(block.load(Ordering::Relaxed)))
    }

    /// A write was acknowledged; gives up its reservation.
    pub(crate) fn written(&self, offset: u64, len: u32) {
        for block in self.range(offset, len) {
            block.store(next(block.load(Ordering::Relaxed)), Ordering::Release);
        }
    }

    /// A write failed or a trim was done; gives up its reservation.
    pub(crate) fn doubtful(&self, offset: u64, len: u32) {
        for block in self.range(offset, len) {
            block.store(next(block.load(Ordering::Relaxed)) | DOUBT, Ordering::Release);
        }
    }

    /// The version that the block at `offset` should hold: 0 where this run never wrote it, nothing
    /// where that is not known.
    pub(crate) fn expected(&self, offset: u64, moment_of_load: bool) -> Option<u32> {
        let word = self.range(offset, u32::try_from(self.block_bytes).unwrap_or(u32::MAX)).first()?;
        let word = word.load(Ordering::Relaxed);
        // During the load the block is reserved by whoever asks.
        let unsettled = if moment_of_load { DOUBT } else { DOUBT | BUSY };
        (word & unsettled == 0).then_some(word & VERSION)
    }
}

fn free(blocks: &[AtomicU32]) {
    blocks.iter().for_each(|block| {
        block.fetch_and(!BUSY, Ordering::Release);
    });
}

fn next(word: u32) -> u32 {
    if word & VERSION == VERSION { 1 } else { (word & VERSION) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::{AccessLine, AccessSpec};

    fn spec(lines: &[(u64, u64)], region_bytes: u64) -> LoadSpec {
        let lines = lines
            .iter()
            .map(|(size, align)| AccessLine { align_bytes: *align, ..AccessLine::new(*size, 50.0, 100.0) });
        LoadSpec::new(AccessSpec { lines: lines.collect() }, region_bytes)
    }

    #[test]
    fn a_block_belongs_to_one_operation_at_a_time() {
        let ledger = Ledger::new(&spec(&[(4096, 4096)], 1 << 20)).unwrap();
        assert!(ledger.claim(8192, 8192));
        assert!(!ledger.claim(4096, 8192) && !ledger.claim(12288, 4096));
        assert!(ledger.claim(4096, 4096), "what was refused must not stay reserved");
        ledger.written(8192, 8192);
        assert_eq!(ledger.expected(12288, false), Some(1));
        assert_eq!(ledger.expected(4096, false), None, "it is still under way");
        ledger.release(4096, 4096);
        assert_eq!(ledger.expected(4096, false), Some(0));
        assert!(ledger.claim(8192, 4096));
        ledger.doubtful(8192, 4096);
        assert_eq!(ledger.expected(8192, false), None);
        assert_eq!(ledger.next_version(8192), 3, "the version of a failed write is not used again");
    }

    #[test]
    fn blocks_are_what_all_operations_have_in_common() {
        assert_eq!(common_block_bytes(&spec(&[(65536, 4096)], 1 << 20)), 4096);
        assert_eq!(common_block_bytes(&spec(&[(8192, 8192), (12288, 12288)], 1 << 20)), 4096);
        let message = Ledger::new(&spec(&[(512, 512)], 1 << 40)).unwrap_err();
        assert!(message.contains("--size") && message.contains("1 GiB"), "{message}");
    }
}
