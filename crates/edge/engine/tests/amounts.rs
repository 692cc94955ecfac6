//! Loads that end when they have done enough, and regions that begin anywhere.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;

use common::{SIZE, apply, attempt, folder, spec, target};
use virtbench_engine::{Control, run};
use virtbench_workload::{Amount, Arrivals, EngineKind, LoadSpec, Rate, Traversal};

/// Longer than any of these loads may take.
const HOUR_NS: u64 = 3_600_000_000_000;

fn one_pass(read_percent: f64) -> LoadSpec {
    LoadSpec {
        time_ns: HOUR_NS,
        amount: Some(Amount { passes: Some(1), ..Amount::default() }),
        traversal: Traversal { every_block_once: true, ..Traversal::default() },
        ..spec(read_percent)
    }
}

#[test]
fn a_pass_over_the_region_ends_a_load_before_its_time() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    for (engine, outstanding, workers) in [(EngineKind::IoUring, 8, 2), (EngineKind::Psync, 1, 1)] {
        let load = LoadSpec { engine, outstanding, workers, ..one_pass(100.0) };
        let outcome = apply(&load, &target);
        assert_eq!(outcome.total.bytes, SIZE * u64::from(workers), "{engine:?}");
        assert!(!outcome.interrupted && outcome.elapsed_ns < HOUR_NS, "{engine:?}");
    }
}

#[test]
fn an_open_loop_offers_its_amount_and_no_more() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let rate = Some(Rate { per_second: 5000.0, arrivals: Arrivals::Constant });
    let amount = Some(Amount { operations: Some(50), ..Amount::default() });
    let outcome = apply(&LoadSpec { rate, amount, ..one_pass(100.0) }, &target);
    let open = outcome.open_loop.unwrap();
    assert_eq!((outcome.total.operations, open.offered, open.backlog_end), (50, 50, 0));
    assert!(!open.saturated && !outcome.interrupted);
}

#[test]
fn only_the_region_is_written() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = target(&path);
    let before = fs::read(&path).unwrap();
    let load = LoadSpec {
        region_bytes: 1 << 20,
        start_bytes: 1 << 20,
        worker_step_bytes: 2 << 20,
        workers: 2,
        ..one_pass(0.0)
    };
    apply(&load, &target);
    let after = fs::read(&path).unwrap();
    for (mib, (old, new)) in before.chunks(1 << 20).zip(after.chunks(1 << 20)).enumerate() {
        let changed = old.chunks(4096).zip(new.chunks(4096)).filter(|(old, new)| old != new).count();
        assert_eq!(changed, if mib % 2 == 1 { 256 } else { 0 }, "MiB {mib}");
    }
    let beyond = attempt(&LoadSpec { start_bytes: 2 << 20, ..load }, &target).unwrap_err().to_string();
    assert!(beyond.contains("of a target of 4 MiB"), "{beyond}");
}

#[test]
fn a_load_that_is_told_it_is_finished_was_not_interrupted() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let load = LoadSpec { time_ns: HOUR_NS, ..spec(100.0) };
    let control = Control::new(1);
    let outcome = run(&load, &target, &control, 0, |_| control.finish()).unwrap();
    assert!(!outcome.interrupted && outcome.elapsed_ns < HOUR_NS);
}
