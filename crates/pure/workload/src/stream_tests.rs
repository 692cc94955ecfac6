//! Tests of the stream of operations.

use super::*;
use crate::access::AccessLine;
use crate::placement::Placement;
use proptest::prelude::*;

fn ops(stream: &mut Stream, count: usize) -> Vec<Op> {
    std::iter::repeat_with(|| stream.next_step())
        .filter_map(|step| match step {
            NextOp::Issue(op) => Some(op),
            NextOp::Wait(_) | NextOp::End => None,
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
    let waits: Vec<bool> = (0..12).map(|_| matches!(stream.next_step(), NextOp::Wait(5))).collect();
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

/// What a stream does until it ends.
fn to_the_end(mut stream: Stream) -> Vec<Op> {
    std::iter::from_fn(|| match stream.next_step() {
        NextOp::Issue(op) => Some(op),
        NextOp::Wait(_) | NextOp::End => None,
    })
    .collect()
}

fn spec(lines: Vec<AccessLine>) -> crate::LoadSpec {
    crate::LoadSpec::new(AccessSpec { lines }, 1 << 20)
}

#[test]
fn an_amount_ends_the_stream() {
    let line = || vec![AccessLine::new(4096, 100.0, 0.0)];
    for (amount, count) in [
        (Amount { passes: Some(2), ..Amount::default() }, 512),
        (Amount { bytes: Some(10_000), ..Amount::default() }, 3),
        (Amount { operations: Some(7), passes: Some(9), ..Amount::default() }, 7),
    ] {
        let load = crate::LoadSpec { amount: Some(amount), ..spec(line()) };
        assert_eq!(to_the_end(load.stream(0)).len(), count, "{amount:?}");
    }
    let zero =
        crate::LoadSpec { amount: Some(Amount { bytes: Some(0), ..Amount::default() }), ..spec(line()) };
    assert_eq!(zero.validate(), Err(crate::LoadError::Nothing));
}

#[test]
fn what_is_counted_is_drawn_as_what_is_not() {
    let mut line = AccessLine::new(4096, 60.0, 40.0);
    line.trim_percent = 30.0;
    let plain = ops(&mut stream(line.clone()), 2_000);
    let amount = Amount { operations: Some(2_000), ..Amount::default() };
    let counted = ops(&mut stream(line.clone()).with_amount(Some(amount)), 2_000);
    let flushed = ops(&mut stream(line).with_flush_every(Some(1)), 2_400);
    let unflushed: Vec<Op> = flushed.into_iter().filter(|op| op.direction != Direction::Flush).collect();
    assert_eq!(plain, counted);
    assert!(unflushed.len() < 2_400 && plain.starts_with(&unflushed[..unflushed.len().min(2_000)]));
}

#[test]
fn workers_have_regions_of_their_own() {
    let load = crate::LoadSpec {
        workers: 2,
        start_bytes: 8192,
        worker_step_bytes: 1 << 20,
        traversal: Traversal { same_start: true, ..Traversal::default() },
        amount: Some(Amount { passes: Some(1), ..Amount::default() }),
        ..spec(vec![AccessLine::new(4096, 100.0, 0.0)])
    };
    let ends = |worker| {
        let done = to_the_end(load.stream(worker));
        (done[0].offset, done.last().map(|op| op.offset + u64::from(op.len)))
    };
    assert_eq!(ends(0), (8192, Some(8192 + (1 << 20))));
    assert_eq!(ends(1), (8192 + (1 << 20), Some(load.end_bytes())));
}

#[test]
fn each_direction_can_go_on_from_its_own_end() {
    let mut load = spec(vec![AccessLine::new(4096, 50.0, 0.0)]);
    load.traversal.position_per_direction = true;
    let drawn = ops(&mut load.stream(0), 200);
    for direction in [Direction::Read, Direction::Write] {
        let offsets: Vec<u64> =
            drawn.iter().filter(|op| op.direction == direction).map(|op| op.offset).collect();
        assert!(offsets.len() > 50 && offsets[0] == 0);
        assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 4096), "{direction:?}: {offsets:?}");
    }
}

/// Means that fio 3.33 issues over a pass of 256 MiB (`ioengine=null`): 4,844 and 4,690 bytes for
/// Iometer's file server, 20,874 and 21,093 for 4 and 64 KiB in halves; with `norandommap` 11,386 and
/// 11,283, 34,756 and 35,190.
#[test]
fn a_mixed_block_size_averages_what_it_does_in_fio() {
    let file_server: &[(u64, f64)] = &[
        (512, 10.0),
        (1024, 5.0),
        (2048, 5.0),
        (4096, 60.0),
        (8192, 2.0),
        (16384, 4.0),
        (32768, 4.0),
        (65536, 10.0),
    ];
    let halves: &[(u64, f64)] = &[(4096, 50.0), (65536, 50.0)];
    for (sizes, once, fio) in [
        (file_server, true, 4767.0),
        (halves, true, 20984.0),
        (file_server, false, 11335.0),
        (halves, false, 34973.0),
    ] {
        let lines = sizes.iter().map(|(size, share)| AccessLine {
            share_percent: *share,
            align_bytes: sizes[0].0,
            ..AccessLine::new(*size, 100.0, 100.0)
        });
        let mut load = crate::LoadSpec { region_bytes: 256 << 20, ..spec(lines.collect()) };
        load.traversal.every_block_once = once;
        load.amount = Some(Amount { passes: Some(1), ..Amount::default() });
        load.validate().unwrap();
        let done = to_the_end(load.stream(0));
        let bytes: u64 = done.iter().map(|op| u64::from(op.len)).sum();
        let mean = bytes as f64 / done.len() as f64;
        assert!((mean / fio - 1.0).abs() < 0.04, "{once}: {mean}, fio {fio}");
        assert!(!once || bytes == 256 << 20, "a pass is the whole region: {bytes}");
    }
}

#[test]
fn parts_and_backward_strides_go_where_they_say() {
    let seek = |placement| {
        let line = AccessLine { placement, ..AccessLine::new(4096, 100.0, 100.0) };
        ops(&mut stream(line), 300).iter().map(|op| op.offset / 4096).collect::<Vec<_>>()
    };
    let part = seek(Placement::Part { from_percent: 25.0, to_percent: 50.0 });
    assert!(part.iter().all(|block| (64..128).contains(block)) && part.iter().max() > part.iter().min());
    let back = seek(Placement::Backward { stride_bytes: 4096 });
    assert_eq!((back[0], back[1], back[2]), (0, 254, 253), "as fio's read:-8k");
    assert_eq!((back[255], back[256]), (0, 254), "from the end again");
}

#[test]
fn zones_leave_out_what_lies_between_them() {
    let placement = Placement::Zones { zone_bytes: 8192, skip_bytes: 12288 };
    let mut load = spec(vec![AccessLine { placement, ..AccessLine::new(4096, 100.0, 100.0) }]);
    load.region_bytes = 11 * 4096;
    load.amount = Some(Amount { passes: Some(2), ..Amount::default() });
    let blocks: Vec<u64> = to_the_end(load.stream(0)).iter().map(|op| op.offset / 4096).collect();
    assert_eq!(blocks, [0, 1, 5, 6, 10, 0, 1, 5, 6, 10]);
}
