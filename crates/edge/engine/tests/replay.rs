//! Traces replayed on real files: what is done is what the trace says, in its order and at its pace.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;

use common::{SIZE, apply, attempt, folder, spec, target};
use virtbench_record::LoadOutcome;
use virtbench_workload::{EngineKind, LoadSpec, Pace, Recording, TraceAction, TraceOp};

const MS: u64 = 1_000_000;
const BLOCK: u64 = 4096;
const PACES: [Pace; 4] = [Pace::Speed(1.0), Pace::Speed(4.0), Pace::Speed(0.5), Pace::Max];

fn op(time_ns: u64, block: u64, action: TraceAction) -> TraceOp {
    let len = if action == TraceAction::Flush { 0 } else { 4096 };
    TraceOp { time_ns, offset: block * BLOCK, len, action, line: u32::try_from(block).unwrap() }
}

/// A load that replays `ops` to their end.
fn replay(ops: &[TraceOp], pace: Pace) -> LoadSpec {
    let recording = Recording::new("t.csv".into(), pace, ops.to_vec());
    LoadSpec { access: recording.access(), time_ns: 60_000 * MS, trace: Some(recording), ..spec(100.0) }
}

/// Forty writes of every third block, a read and a flush after each, in 20 ms.
fn mixed() -> Vec<TraceOp> {
    let round = |round: u64| {
        let time_ns = round * MS / 2;
        [
            op(time_ns, 3 * round, TraceAction::Write),
            op(time_ns, 3 * round + 1, TraceAction::Read),
            op(time_ns, 0, TraceAction::Flush),
        ]
    };
    (0..40).flat_map(round).collect()
}

fn is_whole(outcome: &LoadOutcome, operations: u64) {
    let replayed = outcome.replay.unwrap();
    assert_eq!((replayed.operations, replayed.started, replayed.whole), (operations, operations, true));
    assert!(!outcome.interrupted && outcome.errors == 0, "{:?}", outcome.error_kinds);
}

#[test]
fn exactly_the_recorded_blocks_are_written_at_any_pace_by_either_engine() {
    for (pace, engine, workers) in PACES.into_iter().flat_map(|pace| {
        [(pace, EngineKind::IoUring, 1), (pace, EngineKind::IoUring, 3), (pace, EngineKind::Psync, 2)]
    }) {
        let folder = folder();
        let path = folder.path().join("t.img");
        let target = target(&path);
        let before = fs::read(&path).unwrap();
        let outstanding = if engine == EngineKind::Psync { 1 } else { 4 };
        let outcome = apply(&LoadSpec { engine, workers, outstanding, ..replay(&mixed(), pace) }, &target);
        is_whole(&outcome, 120);
        let counts = [outcome.read.operations, outcome.write.operations, outcome.flush.unwrap().operations];
        assert_eq!(counts, [40, 40, 40], "{pace}");
        let after = fs::read(&path).unwrap();
        let blocks = before.chunks_exact(4096).zip(after.chunks_exact(4096));
        for (index, (before, after)) in blocks.enumerate() {
            assert_eq!(before != after, index % 3 == 0 && index < 120, "{pace}: block {index}");
        }
    }
}

#[test]
fn a_pace_is_an_open_loop_that_ends_with_the_trace() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    for (pace, least_ns) in [(Pace::Speed(1.0), 195 * MS / 10), (Pace::Speed(0.5), 39 * MS)] {
        let outcome = apply(&replay(&mixed(), pace), &target);
        // The last is issued no sooner than that, however fast the target is.
        assert!(outcome.elapsed_ns >= least_ns, "{pace}: {}", outcome.elapsed_ns);
        assert!(outcome.elapsed_ns < 60_000 * MS, "{pace}: the trace's end did not end the load");
        let open = outcome.open_loop.unwrap();
        assert_eq!((open.offered, open.dropped), (120, 0));
        assert!(open.service_ns.unwrap().mean <= outcome.total.latency_ns.unwrap().mean);
    }
    assert_eq!(apply(&replay(&mixed(), Pace::Max), &target).open_loop, None);
}

#[test]
fn the_last_write_of_a_block_wins_with_one_outstanding() {
    // Each block is trimmed after all but its last write: were the order another, blocks would be empty.
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = target(&path);
    let round =
        |i: u64| [op(0, i, TraceAction::Write), op(0, i, TraceAction::Trim), op(0, i, TraceAction::Write)];
    let mut ops: Vec<TraceOp> = (0..50).flat_map(round).collect();
    ops.push(op(0, 60, TraceAction::Write));
    ops.push(op(0, 60, TraceAction::Trim));
    let outcome = apply(&LoadSpec { outstanding: 1, ..replay(&ops, Pace::Max) }, &target);
    is_whole(&outcome, 152);
    assert_eq!(outcome.trim.unwrap().operations, 51);
    let after = fs::read(&path).unwrap();
    let is_empty = |block: usize| after[block * 4096..][..4096].iter().all(|byte| *byte == 0);
    assert!((0..50).all(|block| !is_empty(block)) && is_empty(60));
}

#[test]
fn a_replay_can_be_verified() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let twice: Vec<TraceOp> = mixed().into_iter().chain(mixed()).collect();
    let outcome = apply(&LoadSpec { verify: true, workers: 2, ..replay(&twice, Pace::Max) }, &target);
    is_whole(&outcome, 240);
    let found = outcome.verify.unwrap();
    assert!(found.damaged() == 0 && found.complete && found.blocks_checked >= 40, "{found:?}");
}

#[test]
fn a_target_too_slow_for_the_pace_is_said_to_be_saturated() {
    let folder = folder();
    let target = target(&folder.path().join("t.img")).with_faults("delay=5ms@100%".parse().unwrap());
    let ops: Vec<TraceOp> = (0..60).map(|i| op(i * MS / 2, i, TraceAction::Read)).collect();
    let outcome = apply(&LoadSpec { outstanding: 1, ..replay(&ops, Pace::Speed(1.0)) }, &target);
    is_whole(&outcome, 60);
    let open = outcome.open_loop.as_ref().unwrap();
    assert!(open.saturated && open.backlog_max >= 40 && open.dropped == 0, "{open:?}");
    assert!(outcome.total.latency_ns.unwrap().max > 10 * open.service_ns.unwrap().min);
    assert!(outcome.notes.iter().any(|note| note.contains("--pace recorded")), "{:?}", outcome.notes);
}

#[test]
fn a_time_limit_ends_a_replay_sooner_and_says_how_much_was_done() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let ops: Vec<TraceOp> = (0..100).map(|i| op(i * 100 * MS, i, TraceAction::Read)).collect();
    let outcome = apply(&LoadSpec { time_ns: 350 * MS, ..replay(&ops, Pace::Speed(1.0)) }, &target);
    let replayed = outcome.replay.unwrap();
    assert!((1..=4).contains(&replayed.started) && !replayed.whole, "{replayed:?}");
    assert!(!outcome.interrupted && outcome.elapsed_ns == 350 * MS);
}

#[test]
fn errors_of_a_replay_are_counted() {
    let folder = folder();
    let target = target(&folder.path().join("t.img")).with_faults("eio=100%".parse().unwrap());
    let outcome = apply(&replay(&mixed(), Pace::Max), &target);
    assert!(outcome.replay.unwrap().whole);
    assert_eq!((outcome.errors, outcome.total.operations), (120, 0), "{:?}", outcome.error_kinds);
}

#[test]
fn what_does_not_fit_is_refused_with_its_line() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let message = |ops: &[TraceOp]| attempt(&replay(ops, Pace::Max), &target).unwrap_err().to_string();
    let beyond = message(&[op(0, 1, TraceAction::Read), op(1, SIZE / BLOCK, TraceAction::Read)]);
    assert!(beyond.contains("t.csv, line 1024") && beyond.contains("`region_bytes`"), "{beyond}");
    let odd = TraceOp { offset: 100, ..op(0, 7, TraceAction::Read) };
    let unaligned = message(&[odd]);
    assert!(
        target.facts().direct,
        "the build's disk has no direct I/O: set CARGO_TARGET_DIR to one that has"
    );
    assert!(unaligned.contains("line 7") && unaligned.contains("offset 100"), "{unaligned}");
}
