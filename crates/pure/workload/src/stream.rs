//! One worker's operations, drawn one at a time.

use virtbench_units::{Random, SeedSequence};

use crate::access::AccessSpec;

/// Whether an operation moves data from or to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Read or write.
    pub direction: Direction,
    /// Where, in bytes from the target's start.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// What a worker does next when it has a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Issue this operation.
    Issue(Op),
    /// Start nothing for this many nanoseconds, counted from now, then ask again. Operations under
    /// way complete meanwhile.
    Wait(u64),
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
    len: u32,
    align: u64,
    /// Number of aligned offsets at which a whole operation fits.
    positions: u64,
    burst: u32,
    delay_ns: u64,
}

/// The operations of one worker, in Iometer's way: reads and writes are interspersed on one
/// stream, and an operation that does not seek goes on from where the last one ended, whatever
/// that was (paper 1, section 3.4).
///
/// A line of the mix is drawn for each burst. When a burst is used up and a slot is free, the
/// line's delay passes before the next burst begins; with one outstanding I/O the delay therefore
/// runs from the completion of the burst's last operation, as in Iometer.
#[derive(Debug, Clone)]
pub struct Stream {
    lines: Vec<Line>,
    random: Random,
    region_bytes: u64,
    position: u64,
    current: usize,
    left_in_burst: u32,
    delay_due: bool,
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
        let mut share = 0.0;
        let mut lines: Vec<Line> = access
            .lines
            .iter()
            .map(|line| {
                share += line.share_percent;
                let (read_below, read_always) = threshold(line.read_percent);
                let (random_below, random_always) = threshold(line.random_percent);
                Line {
                    cumulative: threshold(share).0,
                    read_below,
                    read_always,
                    random_below,
                    random_always,
                    len: line.size_bytes as u32,
                    align: line.align_bytes,
                    positions: (region_bytes - line.size_bytes) / line.align_bytes + 1,
                    burst: line.burst,
                    delay_ns: line.delay_ns,
                }
            })
            .collect();
        if let Some(last) = lines.last_mut() {
            last.cumulative = u64::MAX;
        }
        let start = (u128::from(region_bytes) * u128::from(worker) / u128::from(workers.max(1))) as u64;
        Self {
            lines,
            random: Random::new(worker_seed),
            region_bytes,
            position: start,
            current: 0,
            left_in_burst: 0,
            delay_due: false,
        }
    }

    /// What to do with a slot that is free.
    #[inline]
    pub fn next_step(&mut self) -> Step {
        if self.left_in_burst == 0 {
            if self.delay_due {
                self.delay_due = false;
                return Step::Wait(self.lines[self.current].delay_ns);
            }
            self.begin_burst();
        }
        self.left_in_burst -= 1;
        let line = &self.lines[self.current];
        if self.left_in_burst == 0 {
            self.delay_due = line.delay_ns > 0;
        }
        let read = line.read_always || self.random.next_u64() < line.read_below;
        let seek = line.random_always || self.random.next_u64() < line.random_below;
        let offset = if seek {
            self.random.below(line.positions) * line.align
        } else {
            let next = self.position.div_ceil(line.align) * line.align;
            if next + u64::from(line.len) <= self.region_bytes { next } else { 0 }
        };
        self.position = offset + u64::from(line.len);
        let direction = if read { Direction::Read } else { Direction::Write };
        Step::Issue(Op { direction, offset, len: line.len })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessLine;
    use proptest::prelude::*;

    fn ops(stream: &mut Stream, count: usize) -> Vec<Op> {
        std::iter::repeat_with(|| stream.next_step())
            .filter_map(|step| match step {
                Step::Issue(op) => Some(op),
                Step::Wait(_) => None,
            })
            .take(count)
            .collect()
    }

    fn stream(line: AccessLine) -> Stream {
        Stream::new(&AccessSpec::single(line), 1 << 20, 42, 0, 1)
    }

    #[test]
    fn percentages_come_out_as_asked() {
        let drawn = ops(&mut stream(AccessLine::new(4096, 70.0, 25.0)), 100_000);
        let reads = drawn.iter().filter(|op| op.direction == Direction::Read).count();
        assert!((69_000..71_000).contains(&reads), "{reads}");
        let sequential = drawn.windows(2).filter(|w| w[1].offset == w[0].offset + 4096).count();
        // A random seek hits the next block by chance once in 256 times.
        assert!((74_000..76_500).contains(&sequential), "{sequential}");
    }

    #[test]
    fn a_sequential_stream_mixes_reads_and_writes_and_wraps() {
        let drawn = ops(&mut stream(AccessLine::new(4096, 50.0, 0.0)), 257);
        let offsets: Vec<u64> = drawn.iter().map(|op| op.offset).collect();
        assert_eq!(offsets[0], 0);
        assert!(offsets.windows(2).take(255).all(|w| w[1] == w[0] + 4096));
        assert_eq!(offsets[256], 0);
        let directions: std::collections::BTreeSet<bool> =
            drawn.iter().map(|op| op.direction == Direction::Read).collect();
        assert_eq!(directions.len(), 2);
    }

    #[test]
    fn extremes_are_exact() {
        let drawn = ops(&mut stream(AccessLine::new(4096, 100.0, 100.0)), 10_000);
        assert!(drawn.iter().all(|op| op.direction == Direction::Read));
        let drawn = ops(&mut stream(AccessLine::new(4096, 0.0, 0.0)), 10_000);
        assert!(drawn.iter().all(|op| op.direction == Direction::Write));
    }

    #[test]
    fn a_delay_follows_each_burst() {
        let mut line = AccessLine::new(4096, 100.0, 100.0);
        line.burst = 3;
        line.delay_ns = 5;
        let mut stream = stream(line);
        let waits: Vec<bool> = (0..12).map(|_| matches!(stream.next_step(), Step::Wait(5))).collect();
        let pattern = [false, false, false, true];
        assert_eq!(waits, pattern.repeat(3));
    }

    #[test]
    fn lines_of_a_mix_are_drawn_by_share() {
        let line = |size, share| AccessLine { share_percent: share, ..AccessLine::new(size, 100.0, 100.0) };
        let spec = AccessSpec { lines: vec![line(4096, 20.0), line(8192, 80.0)] };
        let mut stream = Stream::new(&spec, 1 << 20, 3, 0, 1);
        let small = ops(&mut stream, 50_000).iter().filter(|op| op.len == 4096).count();
        assert!((9_500..10_500).contains(&small), "{small}");
    }

    #[test]
    fn workers_differ_and_start_apart() {
        let spec = AccessSpec::single(AccessLine::new(4096, 100.0, 0.0));
        let first = |worker| ops(&mut Stream::new(&spec, 1 << 20, 42, worker, 4), 1)[0].offset;
        assert_eq!([first(0), first(1), first(2), first(3)], [0, 1 << 18, 2 << 18, 3 << 18]);
    }

    proptest! {
        #[test]
        fn every_operation_is_aligned_and_inside(
            size in 1u64..100_000, align in 1u64..20_000, region in 100_000u64..1_000_000,
            random in 0.0..=100.0f64, seed in any::<u64>(), worker in 0u32..4,
        ) {
            let line = AccessLine { align_bytes: align, ..AccessLine::new(size, 50.0, random) };
            let mut stream = Stream::new(&AccessSpec::single(line), region, seed, worker, 4);
            for op in ops(&mut stream, 200) {
                prop_assert_eq!(op.offset % align, 0);
                prop_assert!(op.offset + u64::from(op.len) <= region);
            }
        }
    }
}
