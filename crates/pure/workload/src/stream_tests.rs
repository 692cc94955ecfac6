//! Tests of the stream of operations.

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

#[test]
fn trims_are_their_share_of_what_is_not_read() {
    let line = AccessLine { trim_percent: 25.0, ..AccessLine::new(4096, 60.0, 100.0) };
    let drawn = ops(&mut stream(line), 100_000);
    let count = |direction| drawn.iter().filter(|op| op.direction == direction).count();
    assert!((59_000..61_000).contains(&count(Direction::Read)));
    assert!((9_500..10_500).contains(&count(Direction::Trim)), "{}", count(Direction::Trim));
}

#[test]
fn a_flush_follows_every_so_many_writes() {
    let spec = AccessSpec::single(AccessLine::new(4096, 50.0, 100.0));
    let mut stream = Stream::new(&spec, 1 << 20, 42, 0, 1).with_flush_every(Some(7));
    let mut writes = 0;
    let mut flushes = 0;
    for op in ops(&mut stream, 10_000) {
        match op.direction {
            Direction::Flush => {
                assert_eq!((writes, op.offset, op.len), (7, 0, 0));
                writes = 0;
                flushes += 1;
            }
            Direction::Write => writes += 1,
            _ => {}
        }
    }
    assert!(flushes > 600, "{flushes}");
}
