//! An open loop on a real file.

#![allow(clippy::unwrap_used)]

mod common;

use common::{apply, folder, spec, target};
use virtbench_workload::{Arrivals, EngineKind, LoadSpec, Rate};

fn rate(per_second: f64, arrivals: Arrivals) -> Option<Rate> {
    Some(Rate { per_second, arrivals })
}

#[test]
fn the_rate_is_of_all_workers_together_and_service_time_is_within_latency() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let load = LoadSpec { workers: 2, rate: rate(500.0, arrivals), time_ns: 400_000_000, ..spec(100.0) };
        let outcome = apply(&load, &target);
        let open = outcome.open_loop.unwrap();
        // 200 are meant to start; Poisson's number of them has a standard deviation of 14.
        let spread = if arrivals == Arrivals::Constant { 1 } else { 70 };
        assert!(open.offered.abs_diff(200) <= spread, "{arrivals:?}: {open:?}");
        assert!(outcome.total.operations <= open.offered);
        let [latency, service] = [outcome.total.latency_ns.unwrap(), open.service_ns.unwrap()];
        assert!(service.mean <= latency.mean, "{service:?} {latency:?}");
    }
}

#[test]
fn a_rate_beyond_the_target_is_saturation_with_either_engine() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let load = LoadSpec { engine, outstanding: 1, rate: rate(5e6, Arrivals::Constant), ..spec(100.0) };
        let outcome = apply(&load, &target);
        let open = outcome.open_loop.unwrap();
        assert!(open.saturated && open.dropped > 0, "{open:?}");
        assert!(open.backlog_max <= 65_536 && open.backlog_end <= open.backlog_max, "{open:?}");
        assert!(outcome.notes.iter().any(|note| note.contains("saturated")), "{:?}", outcome.notes);
        assert!(outcome.total.latency_ns.unwrap().mean > 2.0 * open.service_ns.unwrap().mean);
    }
}

#[test]
fn flushes_take_no_turn_of_the_rate() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let load = LoadSpec { rate: rate(200.0, Arrivals::Constant), flush_every: Some(2), ..spec(0.0) };
    let outcome = apply(&load, &target);
    let [writes, flushes] = [outcome.write.operations, outcome.flush.unwrap().operations];
    assert!(writes + outcome.open_loop.as_ref().unwrap().backlog_end + 8 >= 40, "{writes} writes");
    assert!(flushes > 0 && flushes <= writes / 2 + 1, "{writes} writes, {flushes} flushes");
}
