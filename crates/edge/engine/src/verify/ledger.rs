//! Which version of each block the target has acknowledged, and which of them it must keep.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

/// The most memory, and the largest file, that a ledger may take, in bytes.
const MAX_LEDGER_BYTES: u64 = 1 << 30;

/// An operation is in flight on the block.
const BUSY: u32 = 1 << 31;

/// What the block holds is not known: a write to it failed, or it was trimmed.
const DOUBT: u32 = 1 << 30;

const VERSION: u32 = DOUBT - 1;

/// The epoch of a version that no flush can make stable.
const NEVER: u32 = u32::MAX;

/// What should be on the target, shared by all workers of a load.
///
/// Three words a block: two flags and the number of writes acknowledged, which starts again at 1 after
/// 2^30 of them; the newest version known to be stable when that write was acknowledged; and how many
/// flushes had been issued by then. A flush that succeeds makes stable what was acknowledged before it
/// was issued. A block is the largest size that all operations start and end at multiples of.
///
/// The thread that has claimed a block changes its words, the version last: a process that is killed between
/// leaves words that claim no more than is true.
#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    block_bytes: u64,
    trims: bool,
    memory: Memory,
}

/// What a block may hold once its load is over, whatever happened to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The newest version that was flushed; 0 where nothing must be there.
    pub stable: u32,
    /// The newest version that was sent.
    pub newest: u32,
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

/// How many blocks a ledger of this load has.
///
/// # Errors
/// Too many; the message says which flag to change.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn block_count(spec: &LoadSpec) -> Result<usize, String> {
    let block_bytes = common_block_bytes(spec);
    let count = spec.region_bytes / block_bytes;
    if count.saturating_mul(3 * WORD_BYTES as u64) > MAX_LEDGER_BYTES {
        return Err(format!(
            "--verify remembers the versions of each of {count} blocks of {}, which takes more than {}: lower --size or raise --bs and --align",
            format_bytes(block_bytes),
            format_bytes(MAX_LEDGER_BYTES)
        ));
    }
    Ok(count as usize)
}

impl Ledger {
    /// The ledger of a load that begins, knowing nothing.
    ///
    /// # Errors
    /// The region has too many blocks; the message says which flag to change.
    pub(crate) fn new(spec: &LoadSpec) -> Result<Self, String> {
        let memory = Memory::anonymous(block_count(spec)?).map_err(|error| format!("--verify: {error}"))?;
        Ok(Self::with_memory(spec, memory))
    }

    /// A ledger of `spec` in this memory, which has a place for each block.
    pub(crate) fn with_memory(spec: &LoadSpec, memory: Memory) -> Self {
        let trims = spec.access.lines.iter().any(|line| line.trim_percent > 0.0);
        Self { seed: spec.seed, block_bytes: common_block_bytes(spec), trims, memory }
    }

    /// The same, of a load that trims or does not.
    pub(crate) fn of_trims(self, trims: bool) -> Self {
        Self { trims, ..self }
    }

    /// Where it is.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
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
    fn indices(&self, offset: u64, len: u32) -> std::ops::Range<usize> {
        let first = (offset / self.block_bytes) as usize;
        let end = first + (u64::from(len) / self.block_bytes) as usize;
        if end <= self.memory.versions().len() { first..end } else { 0..0 }
    }

    fn range(&self, offset: u64, len: u32) -> &[AtomicU32] {
        &self.memory.versions()[self.indices(offset, len)]
    }

    #[allow(clippy::cast_possible_truncation)]
    fn index(&self, offset: u64) -> Option<usize> {
        let index = (offset / self.block_bytes) as usize;
        (index < self.memory.versions().len()).then_some(index)
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
        self.index(offset).map_or(1, |index| next(self.memory.versions()[index].load(Ordering::Relaxed)))
    }

    /// A write was acknowledged; gives up its reservation.
    pub(crate) fn written(&self, offset: u64, len: u32) {
        let epoch = self.memory.issued().load(Ordering::Acquire);
        for index in self.indices(offset, len) {
            self.move_on(index, self.stable(index), epoch, 0);
        }
    }

    /// A write failed: it may or may not have arrived, whole or in part. Gives up its reservation.
    pub(crate) fn failed(&self, offset: u64, len: u32) {
        self.indices(offset, len).for_each(|index| self.move_on(index, self.stable(index), NEVER, DOUBT));
    }

    /// A trim was done or failed; gives up its reservation.
    pub(crate) fn trimmed(&self, offset: u64, len: u32) {
        self.indices(offset, len).for_each(|index| self.move_on(index, 0, NEVER, DOUBT));
    }

    fn move_on(&self, index: usize, stable: u32, epoch: u32, flags: u32) {
        let version = &self.memory.versions()[index];
        let new = next(version.load(Ordering::Relaxed));
        // After 2^30 writes versions can no longer be compared with those before.
        let stable = if new == 1 { 0 } else { stable };
        self.memory.stable()[index].store(stable, Ordering::Release);
        self.memory.epochs()[index].store(epoch, Ordering::Release);
        version.store(new | flags, Ordering::Release);
    }

    /// The newest version of a block that is known to be stable.
    fn stable(&self, index: usize) -> u32 {
        let flushed = self.memory.flushed().load(Ordering::Acquire);
        if self.memory.epochs()[index].load(Ordering::Acquire) < flushed {
            self.memory.versions()[index].load(Ordering::Acquire) & VERSION
        } else {
            self.memory.stable()[index].load(Ordering::Acquire)
        }
    }

    /// A flush is about to be issued; returns its number, for [`Ledger::flushed`].
    pub(crate) fn flushing(&self) -> u32 {
        self.memory.issued().fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// The flush of this number, or a later one, has succeeded.
    pub(crate) fn flushed(&self, number: u32) {
        self.memory.flushed().fetch_max(number, Ordering::AcqRel);
    }

    /// What the block at `offset` may hold now that the load is over.
    pub(crate) fn claim_after(&self, offset: u64) -> Option<Claim> {
        let index = self.index(offset)?;
        let word = self.memory.versions()[index].load(Ordering::Acquire);
        let busy = word & BUSY != 0;
        let newest = if busy { next(word) } else { word & VERSION };
        let stable = if busy && (self.trims || newest == 1) { 0 } else { self.stable(index) };
        Some(Claim { stable, newest })
    }

    /// The version that the block at `offset` should hold: 0 where this run never wrote it, nothing
    /// where that is not known.
    pub(crate) fn expected(&self, offset: u64, moment_of_load: bool) -> Option<u32> {
        let word = self.memory.versions()[self.index(offset)?].load(Ordering::Relaxed);
        // During the load the block is reserved by the caller.
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

/// The flushes that one worker has in flight.
///
/// They may complete in any order and a completion does not say which it is. So many successes vouch
/// for the oldest ones only: one of them is at least as new.
#[derive(Debug, Default)]
pub(crate) struct Flushes(VecDeque<u32>);

impl Flushes {
    /// One is about to be issued.
    pub(crate) fn issue(&mut self, ledger: &Ledger) {
        self.0.push_back(ledger.flushing());
    }

    /// One is over.
    pub(crate) fn completed(&mut self, ledger: &Ledger, succeeded: bool) {
        let number = if succeeded { self.0.pop_front() } else { self.0.pop_back() };
        if let Some(number) = number.filter(|_| succeeded) {
            ledger.flushed(number);
        }
    }
}

/// Bytes of a word.
pub(super) const WORD_BYTES: usize = size_of::<AtomicU32>();

/// Bytes before the words of the blocks: a page, which keeps them aligned.
pub(super) const HEADER_BYTES: usize = 4096;

/// Where the header holds the number of flushes issued, and the newest that has succeeded.
const ISSUED: usize = HEADER_BYTES / WORD_BYTES - 2;

const FLUSHED: usize = HEADER_BYTES / WORD_BYTES - 1;

/// A header, then a word of each kind for each block.
#[derive(Debug)]
pub(crate) struct Memory {
    map: MmapRaw,
    blocks: usize,
}

/// Bytes that so many blocks take, with the header.
pub(super) fn bytes_of(blocks: usize) -> usize {
    HEADER_BYTES + 3 * WORD_BYTES * blocks
}

impl Memory {
    /// Zeros that nobody else sees.
    pub(super) fn anonymous(blocks: usize) -> io::Result<Self> {
        MmapMut::map_anon(bytes_of(blocks)).map(|map| Self { map: map.into(), blocks })
    }

    /// A file of at least [`bytes_of`] this many blocks. What is stored is in the file at once, as far
    /// as other processes see, and stays there when this one is killed.
    pub(super) fn mapped(file: &File, blocks: usize) -> io::Result<Self> {
        let map = MmapRaw::map_raw(file)?;
        if map.len() < bytes_of(blocks) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map, blocks })
    }

    /// A copy of such a file, as it is now.
    pub(super) fn copied(file: &File, blocks: usize) -> io::Result<Self> {
        // SAFETY: the map is private; a process that could cut the file short is kept out by a lock.
        let map = unsafe { MmapOptions::new().map_copy(file) }?;
        if map.len() < bytes_of(blocks) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map: map.into(), blocks })
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the map is page-aligned, at least so long, and lives as long as `self`; every access
        // to it is atomic. A file that is cut short meanwhile is locked by the process that maps it.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), bytes_of(self.blocks) / WORD_BYTES) }
    }

    fn kind(&self, index: usize) -> &[AtomicU32] {
        let first = HEADER_BYTES / WORD_BYTES + index * self.blocks;
        &self.words()[first..first + self.blocks]
    }

    /// Flags and version of each block.
    pub(super) fn versions(&self) -> &[AtomicU32] {
        self.kind(0)
    }

    /// The newest version of each block that was stable when its version was acknowledged.
    pub(super) fn stable(&self) -> &[AtomicU32] {
        self.kind(1)
    }

    /// Flushes that had been issued when the block's version was acknowledged.
    pub(super) fn epochs(&self) -> &[AtomicU32] {
        self.kind(2)
    }

    /// Flushes issued.
    pub(super) fn issued(&self) -> &AtomicU32 {
        &self.words()[ISSUED]
    }

    /// The newest flush that has succeeded.
    pub(super) fn flushed(&self) -> &AtomicU32 {
        &self.words()[FLUSHED]
    }

    /// Writes what is mapped to its file.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.map.flush()
    }
}

#[cfg(test)]
mod tests {
    use virtbench_workload::{AccessLine, AccessSpec};

    use super::*;

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
        assert_eq!(ledger.expected(4096, false), None, "it is still in flight");
        ledger.release(4096, 4096);
        assert_eq!(ledger.expected(4096, false), Some(0));
        assert!(ledger.claim(8192, 4096));
        ledger.trimmed(8192, 4096);
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

    #[test]
    fn a_flush_vouches_for_what_was_acknowledged_before_it_was_issued() {
        let ledger = Ledger::new(&spec(&[(4096, 4096)], 1 << 20)).unwrap();
        let claim = |stable, newest| Some(Claim { stable, newest });
        let mut flushes = Flushes::default();
        ledger.written(0, 4096);
        flushes.issue(&ledger);
        ledger.written(4096, 4096);
        assert_eq!((ledger.claim_after(0), ledger.claim_after(4096)), (claim(0, 1), claim(0, 1)));
        flushes.completed(&ledger, true);
        assert_eq!((ledger.claim_after(0), ledger.claim_after(4096)), (claim(1, 1), claim(0, 1)));
        // A later write, acknowledged, failed or in flight, does not undo the promise.
        ledger.written(0, 4096);
        assert_eq!(ledger.claim_after(0), claim(1, 2));
        ledger.failed(0, 4096);
        assert_eq!(ledger.claim_after(0), claim(1, 3));
        assert!(ledger.claim(0, 4096));
        assert_eq!(ledger.claim_after(0), claim(1, 4));
        ledger.trimmed(0, 4096);
        assert_eq!(ledger.claim_after(0), claim(0, 4));
        // Of two flushes one fails: the first is vouched for whichever it was.
        ledger.written(8192, 4096);
        flushes.issue(&ledger);
        ledger.written(12288, 4096);
        flushes.issue(&ledger);
        flushes.completed(&ledger, false);
        flushes.completed(&ledger, true);
        assert_eq!((ledger.claim_after(8192), ledger.claim_after(12288)), (claim(1, 1), claim(0, 1)));
    }
}
