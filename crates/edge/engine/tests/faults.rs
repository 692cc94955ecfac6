//! How faults show in what is reported.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::servers::{open, spec};
use common::{apply, folder, target};
use virtbench_workload::{EngineKind, FaultSpec, LoadSpec};

#[test]
fn faults_are_counted_by_kind_and_said() {
    let faults: FaultSpec = "eio=1%,short=0.5%".parse().unwrap();
    let target = open("null").unwrap().with_faults(faults);
    let load = LoadSpec { workers: 2, ..spec(&target, 4096) };
    let outcome = apply(&load, &target);
    let kinds = &outcome.error_kinds;
    let [eio, short] = ["Input/output error (os error 5)", "short transfer"].map(|kind| kinds[kind] as f64);
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    let all = outcome.total.operations as f64 + eio + short;
    assert!((0.5..1.5).contains(&(eio / all * 100.0)), "{eio} of {all}");
    assert!((0.2..0.8).contains(&(short / all * 100.0)), "{short} of {all}");
    assert!(outcome.notes.iter().any(|note| note.contains("injected")), "{:?}", outcome.notes);
}

#[test]
fn a_delay_shows_in_the_latency_of_those_it_strikes() {
    let target = open("null").unwrap().with_faults("delay=20ms@10%".parse().unwrap());
    let mut load = spec(&target, 4096);
    load.outstanding = 4;
    load.access.lines[0].delay_ns = 100_000;
    let outcome = apply(&load, &target);
    assert_eq!(outcome.errors, 0);
    let latency = outcome.total.latency_ns.unwrap();
    assert!(latency.p50 < 20_000_000 && latency.max >= 20_000_000, "{latency:?}");
}

#[test]
fn everything_failing_ends_the_load() {
    let target = open("null").unwrap().with_faults("eio=100%".parse().unwrap());
    let load = LoadSpec { time_ns: 60_000_000_000, ..spec(&target, 4096) };
    let outcome = apply(&load, &target);
    assert!(outcome.interrupted && outcome.total.operations == 0 && outcome.errors >= 1000);
}

#[test]
fn a_stall_ends_the_load_at_its_time_limit_with_either_engine() {
    let folder = folder();
    let file = folder.path().join("t.img");
    for (target, engine, outstanding) in [
        (open("null").unwrap(), EngineKind::IoUring, 8),
        (target(&file), EngineKind::IoUring, 8),
        (target(&file), EngineKind::Psync, 1),
    ] {
        let target = target.with_faults("stall@1%".parse().unwrap());
        let load = LoadSpec {
            engine,
            outstanding,
            time_ns: 60_000_000_000,
            timeout_ns: 200_000_000,
            ..spec(&target, 4096)
        };
        let outcome = apply(&load, &target);
        assert!(outcome.interrupted && outcome.errors > 0, "{outcome:?}");
        assert!(outcome.notes.iter().any(|note| note.contains("--timeout 200ms")), "{:?}", outcome.notes);
    }
}
