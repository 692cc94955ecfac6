//! One worker's operations, drawn one at a time.

use std::collections::VecDeque;

use virtbench_units::{Random, SeedSequence};

use crate::access::AccessSpec;
use crate::pass::{Amount, Traversal};
use crate::placement::Chooser;

/// What an operation does to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the target.
    Read,
    /// To the target.
    Write,
    /// Discards what the target holds there.
    Trim,
    /// Makes everything written so far durable; offset and length are zero.
    Flush,
}

impl Direction {
    /// Whether data moves, so that a completion tells how many bytes did.
    #[inline]
    #[must_use]
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What it does.
    pub direction: Direction,
    /// Where, in bytes from the target's start.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// Which line of the mix it belongs to, counted from 0. A flush belongs to the first.
    pub line: u16,
}

/// What a worker does next when it has a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextOp {
    /// Issue this operation.
    Issue(Op),
    /// Start nothing for this many nanoseconds, counted from now, then ask again. Operations under
    /// way complete meanwhile.
    Wait(u64),
    /// The worker has done enough: nothing more is to be started.
    End,
}

/// A line of the mix with everything that can be computed once.
#[derive(Debug, Clone)]
struct Line {
    /// Upper end of this line's part of the 64-bit range, so that one draw picks a line.
    cumulative: u64,
    read_below: u64,
    read_always: bool,
    random_below: u64,
    random_always: bool,
    /// Which of those that are not reads are trims.
    trims: bool,
    trim_below: u64,
    trim_always: bool,
    len: u32,
    number: u16,
    align: u64,
    chooser: Chooser,
    burst: u32,
    delay_ns: u64,
}

impl Line {
    /// Where its next operation goes and how long it is, in bytes from the region's start, after one that has ended at
    /// `position`.
    #[inline]
    fn place(
        &mut self,
        random: &mut Random,
        map: Option<&mut RandomMap>,
        position: u64,
        region_bytes: u64,
    ) -> (u64, u32) {
        let seeks = self.random_always || random.next_u64() < self.random_below;
        match map {
            Some(map) if seeks && self.chooser.is_uniform() => map.visit(random, self.len),
            _ if seeks => (self.chooser.draw(random) * self.align, self.len),
            _ => {
                let next = position.div_ceil(self.align) * self.align;
                let fits = next + u64::from(self.len) <= region_bytes;
                (if fits { next } else { 0 }, self.len)
            }
        }
    }
}

/// What a worker has still to do, at most.
#[derive(Debug, Clone)]
struct Left {
    bytes: u64,
    operations: u64,
}

/// The operations of one worker, in Iometer's way: reads and writes are interspersed on one
/// stream, and an operation that does not seek goes on from where the last one ended, whatever
/// that was ([ESX Disk 2003], section 3.4).
///
/// A line of the mix is drawn for each burst. When a burst is used up and a slot is free, the
/// line's delay passes before the next burst begins; with one outstanding I/O the delay therefore
/// runs from the completion of the burst's last operation, as in Iometer.
#[derive(Debug, Clone)]
pub struct Stream {
    lines: Vec<Line>,
    random: Random,
    region_bytes: u64,
    /// Where the region begins, in bytes from the target's start.
    start_bytes: u64,
    /// Where the last operation has ended: any, or the last read and the last of all others.
    positions: [u64; 2],
    /// Positions whose turn comes later.
    waiting: VecDeque<[u64; 2]>,
    /// Which of the positions is that of operations that are no reads.
    write_position: usize,
    map: Option<Box<RandomMap>>,
    /// What is left of the worker's amount, if it has one.
    left: Option<Left>,
    current: usize,
    left_in_burst: u32,
    delay_due: bool,
    /// Writes between flushes; `u32::MAX` stands for never.
    flush_every: u32,
    writes_until_flush: u32,
    /// Whether nothing comes between operations and none is counted: one line without a delay, no flushes, no amount. Asking
    /// for each of these would cost an operation a nanosecond.
    is_steady: bool,
}

/// A share of the 64-bit range: `percent` of 2^64, and whether it is all of it.
#[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
fn threshold(percent: f64) -> (u64, bool) {
    // `as` saturates, so 100 % becomes u64::MAX; the flag makes it exact.
    ((percent / 100.0 * 18_446_744_073_709_551_616.0) as u64, percent >= 100.0)
}

impl Stream {
    /// The stream of worker number `worker` of `workers`. Sequential access of different workers
    /// begins at places spread evenly over the region, so that they do not shadow one another.
    ///
    /// `access` must be valid and its blocks fit `region_bytes`, which
    /// [`LoadSpec::validate`](crate::LoadSpec::validate) ensures.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn new(access: &AccessSpec, region_bytes: u64, seed: u64, worker: u32, workers: u32) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let mut worker_seed = seeds.next_seed();
        for _ in 0..worker {
            worker_seed = seeds.next_seed();
        }
        let start_bytes = (u128::from(region_bytes) * u128::from(worker) / u128::from(workers.max(1))) as u64;
        let mut share = 0.0;
        let mut lines: Vec<Line> = access
            .lines
            .iter()
            .enumerate()
            .map(|(number, line)| {
                share += line.share_percent;
                let (read_below, read_always) = threshold(line.read_percent);
                let (random_below, random_always) = threshold(line.random_percent);
                let (trim_below, trim_always) = threshold(line.trim_percent);
                let positions = (region_bytes - line.size_bytes) / line.align_bytes + 1;
                let start = start_bytes / line.align_bytes;
                Line {
                    cumulative: threshold(share).0,
                    read_below,
                    read_always,
                    random_below,
                    random_always,
                    trims: line.trim_percent > 0.0,
                    trim_below,
                    trim_always,
                    len: line.size_bytes as u32,
                    number: number as u16,
                    align: line.align_bytes,
                    chooser: Chooser::new(line.placement, positions, line.align_bytes, start, seed),
                    burst: line.burst,
                    delay_ns: line.delay_ns,
                }
            })
            .collect();
        if let Some(last) = lines.last_mut() {
            last.cumulative = u64::MAX;
        }
        Self {
            lines,
            random: Random::new(worker_seed),
            region_bytes,
            start_bytes: 0,
            positions: [start_bytes; 2],
            waiting: VecDeque::new(),
            write_position: 0,
            map: None,
            left: None,
            current: 0,
            left_in_burst: 0,
            delay_due: false,
            flush_every: u32::MAX,
            writes_until_flush: u32::MAX,
            is_steady: false,
        }
        .settled()
    }

    /// The same stream that knows whether it is steady.
    fn settled(mut self) -> Self {
        let is_uniform = matches!(self.lines.as_slice(), [line] if line.delay_ns == 0);
        self.is_steady =
            is_uniform && self.waiting.is_empty() && self.left.is_none() && self.flush_every == u32::MAX;
        self
    }

    /// The same stream with a [`Direction::Flush`] after so many writes.
    #[must_use]
    pub fn with_flush_every(mut self, writes: Option<u32>) -> Self {
        self.flush_every = writes.unwrap_or(u32::MAX).max(1);
        self.writes_until_flush = self.flush_every;
        self.settled()
    }

    /// How many lines the mix has.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The same stream on a region that begins there, in bytes from the target's start.
    #[must_use]
    pub fn with_start(mut self, start_bytes: u64) -> Self {
        self.start_bytes = start_bytes;
        self
    }

    /// The same stream in another order; `block_bytes` are what every block is visited in.
    #[must_use]
    pub fn with_traversal(mut self, traversal: Traversal, block_bytes: u64) -> Self {
        self.write_position = usize::from(traversal.position_per_direction);
        if traversal.same_start {
            self.positions = [0; 2];
            self.lines.iter_mut().for_each(|line| line.chooser.begin_at_start());
        }
        if traversal.every_block_once {
            self.map = Some(Box::new(RandomMap::new(self.region_bytes, block_bytes)));
        }
        self.waiting = (0..traversal.more_positions).map(|_| self.positions).collect();
        self.settled()
    }

    /// The same stream that ends when this is done.
    #[must_use]
    pub fn with_amount(mut self, amount: Option<Amount>) -> Self {
        self.left = amount.map(|amount| Left {
            bytes: amount.most_bytes(self.pass_bytes()),
            operations: amount.operations.unwrap_or(u64::MAX),
        });
        self.settled()
    }

    /// What a pass over the region covers, in bytes: a stride leaves some of it out.
    fn pass_bytes(&self) -> u64 {
        let strided = || match self.lines.as_slice() {
            [line] => Some(line.chooser.pass_operations()? * u64::from(line.len)),
            _ => None,
        };
        self.map.as_ref().map(|map| map.pass_bytes()).or_else(strided).unwrap_or(self.region_bytes)
    }

    /// Whether the worker has done enough.
    #[inline]
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.bytes == 0 || left.operations == 0)
    }

    /// What to do with a slot that is free. A call of its own takes a tenth of the null target's loop.
    #[inline(always)]
    pub fn next_step(&mut self) -> NextOp {
        if !self.is_steady
            && let Some(instead) = self.instead_of_operation()
        {
            return instead;
        }
        let line = &mut self.lines[self.current];
        let read = line.read_always || self.random.next_u64() < line.read_below;
        let position = &mut self.positions[if read { 0 } else { self.write_position }];
        let map = self.map.as_deref_mut();
        let (offset, len) = line.place(&mut self.random, map, *position, self.region_bytes);
        *position = offset + u64::from(len);
        let number = line.number;
        let direction = if read {
            Direction::Read
        } else if line.trims && (line.trim_always || self.random.next_u64() < line.trim_below) {
            Direction::Trim
        } else {
            Direction::Write
        };
        if !self.is_steady {
            self.count(direction, len);
        }
        NextOp::Issue(Op { direction, offset: self.start_bytes + offset, len, line: number })
    }

    /// What comes before the next operation: a flush, a delay, the end. If nothing does, its burst is one operation shorter.
    #[inline(never)]
    fn instead_of_operation(&mut self) -> Option<NextOp> {
        // As in fio, none follows the last write.
        if self.is_over() {
            return Some(NextOp::End);
        }
        if self.writes_until_flush == 0 {
            self.writes_until_flush = self.flush_every;
            return Some(NextOp::Issue(Op { direction: Direction::Flush, offset: 0, len: 0, line: 0 }));
        }
        if self.left_in_burst == 0 {
            if self.delay_due {
                self.delay_due = false;
                return Some(NextOp::Wait(self.lines[self.current].delay_ns));
            }
            self.begin_burst();
        }
        self.left_in_burst -= 1;
        if let Some(next) = self.waiting.pop_front() {
            self.waiting.push_back(std::mem::replace(&mut self.positions, next));
        }
        if self.left_in_burst == 0 {
            self.delay_due = self.lines[self.current].delay_ns > 0;
        }
        None
    }

    /// Takes an operation off what is left until the next flush and until the end.
    fn count(&mut self, direction: Direction, len: u32) {
        if direction == Direction::Write && self.flush_every != u32::MAX {
            self.writes_until_flush -= 1;
        }
        if let Some(left) = &mut self.left {
            left.bytes = left.bytes.saturating_sub(len.into());
            left.operations -= 1;
        }
    }

    fn begin_burst(&mut self) {
        if self.lines.len() > 1 {
            let draw = self.random.next_u64();
            self.current =
                self.lines.iter().position(|line| draw <= line.cumulative).unwrap_or(self.lines.len() - 1);
        }
        self.left_in_burst = self.lines[self.current].burst;
    }
}

/// Bits of a word.
const BITS: u64 = 64;

/// The blocks of a region, each visited at most once a pass.
///
/// Level 0 has a bit for each block; a bit of a higher level says that the word of 64 bits below it is
/// full, so that the next free block is found in a few steps however full the map is.
#[derive(Debug, Clone)]
pub(crate) struct RandomMap {
    levels: Vec<Vec<u64>>,
    blocks: u64,
    grain_bytes: u64,
    free: u64,
}

impl RandomMap {
    /// A map of the whole blocks of `grain_bytes` in `region_bytes`, of which there must be one.
    pub(crate) fn new(region_bytes: u64, grain_bytes: u64) -> Self {
        let blocks = (region_bytes / grain_bytes.max(1)).max(1);
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(BITS);
            levels.push(vec![0; usize::try_from(words).unwrap_or(usize::MAX)]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { levels, blocks, grain_bytes, free: 0 };
        map.reset();
        map
    }

    /// Bytes of memory that such a map takes.
    pub(crate) fn memory_bytes(region_bytes: u64, grain_bytes: u64) -> u64 {
        region_bytes / grain_bytes.max(1) / 8
    }

    /// What a pass covers, in bytes.
    pub(crate) fn pass_bytes(&self) -> u64 {
        self.blocks * self.grain_bytes
    }

    /// Begins a new pass.
    pub(crate) fn reset(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            // What lies beyond the last block is never free.
            let beyond = bits % BITS;
            if let (Some(last), true) = (level.last_mut(), beyond > 0) {
                *last = u64::MAX << beyond;
            }
            bits = bits.div_ceil(BITS);
        }
        self.free = self.blocks;
    }

    /// Whether every block has been visited.
    pub(crate) fn is_full(&self) -> bool {
        self.free == 0
    }

    /// Visits a block drawn at random, or the next free one after it (around the end), and up to
    /// `len` bytes from there on, as far as nothing of them has been visited: offset and length, in bytes.
    /// Begins a new pass where every block has been visited.
    pub(crate) fn visit(&mut self, random: &mut Random, len: u32) -> (u64, u32) {
        if self.is_full() {
            self.reset();
        }
        let drawn = random.below(self.blocks);
        let first = self.next_free(drawn).or_else(|| self.next_free(0)).unwrap_or(0);
        let wanted = u64::from(len).div_ceil(self.grain_bytes);
        let mut visited = 0;
        while visited < wanted && first + visited < self.blocks && self.mark(first + visited) {
            visited += 1;
        }
        let bytes = (visited * self.grain_bytes).min(u64::from(len));
        (first * self.grain_bytes, u32::try_from(bytes).unwrap_or(len))
    }

    /// Marks a block as visited; `false` if it was already.
    fn mark(&mut self, block: u64) -> bool {
        let mut index = block;
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Some(word) = level.get_mut(word_of(index)) else { return false };
            let bit = 1 << (index % BITS);
            if number == 0 && *word & bit != 0 {
                return false;
            }
            *word |= bit;
            if *word != u64::MAX {
                break;
            }
            index /= BITS;
        }
        self.free -= 1;
        true
    }

    /// The first free block from `block` on.
    fn next_free(&self, block: u64) -> Option<u64> {
        let (mut number, mut index) = (0, block);
        // Upwards until a word has something free at or after the place, ...
        let found = loop {
            let level = self.levels.get(number)?;
            let word = level.get(word_of(index)).copied().unwrap_or(u64::MAX);
            let free = !word & (u64::MAX << (index % BITS));
            if free != 0 {
                break index / BITS * BITS + u64::from(free.trailing_zeros());
            }
            index = index / BITS + 1;
            number += 1;
        };
        // ... and down again to the first free block below it.
        let mut index = found;
        for level in self.levels[..number].iter().rev() {
            let word = level.get(word_of(index * BITS)).copied().unwrap_or(u64::MAX);
            index = index * BITS + u64::from((!word).trailing_zeros());
        }
        Some(index)
    }
}

fn word_of(bit: u64) -> usize {
    usize::try_from(bit / BITS).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod stream_tests;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pass_visits_every_block_once(blocks in 1u64..20_000, most in 1u32..40, seed: u64) {
            let mut map = RandomMap::new(blocks * 512 + 100, 512);
            let mut random = Random::new(seed);
            let mut seen = BTreeSet::new();
            while !map.is_full() {
                let len = 512 * (1 + u32::try_from(random.below(most.into())).unwrap());
                let (offset, got) = map.visit(&mut random, len);
                prop_assert!(got > 0 && got <= len && got % 512 == 0);
                for block in offset / 512..(offset + u64::from(got)) / 512 {
                    prop_assert!(block < blocks && seen.insert(block), "block {} twice", block);
                }
            }
            prop_assert_eq!(seen.len() as u64, blocks);
            map.visit(&mut random, 512);
            prop_assert!(map.free == blocks - 1, "a new pass begins");
        }
    }
}
