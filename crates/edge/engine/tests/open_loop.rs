//! An open loop on a real file.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::{apply, folder, servers, spec, target};
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

/// One operation at a time, some of which are held up for 100 ms: meanwhile others should have started.
#[test]
fn what_waits_behind_a_slow_operation_has_waited_since_its_intended_start() {
    let folder = folder();
    let target = target(&folder.path().join("t.img")).with_faults("delay=100ms@1%".parse().unwrap());
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let rate = rate(500.0, Arrivals::Constant);
        let load = LoadSpec { engine, outstanding: 1, rate, time_ns: 2_000_000_000, ..spec(100.0) };
        let outcome = apply(&load, &target);
        let [latency, service] =
            [outcome.total.latency_ns.unwrap(), outcome.open_loop.unwrap().service_ns.unwrap()];
        assert!(service.max >= 100_000_000, "nothing was held up: {service:?}");
        // Of a hundred operations one is held up itself, and some fifty stand behind it.
        assert!(service.p90 < 50_000_000, "{engine:?}: {service:?}");
        assert!(latency.p90 > 50_000_000, "{engine:?}: {latency:?}");
    }
}

#[test]
fn a_rate_beyond_the_target_is_saturation_with_either_engine() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let rate = rate(5e6, Arrivals::Constant);
        let load = LoadSpec { engine, outstanding: 1, rate, time_ns: 1_000_000_000, ..spec(100.0) };
        let outcome = apply(&load, &target);
        let open = outcome.open_loop.unwrap();
        assert!(open.saturated && open.dropped > 0, "{open:?}");
        assert!(open.backlog_max <= 65_536 && open.backlog_end <= open.backlog_max, "{open:?}");
        assert!(outcome.notes.iter().any(|note| note.contains("saturated")), "{:?}", outcome.notes);
        // Each has waited for all before it, or as long as a full queue is, 13 ms: on average half of the shortest
        // service at least, however slow or fast the disk.
        let [latency, service] = [outcome.total.latency_ns.unwrap(), open.service_ns.unwrap()];
        let waited_ns = latency.mean - service.mean;
        let least_ns = 0.4 * (service.min as f64).min(13e6);
        assert!(outcome.total.operations < 2 || waited_ns > least_ns, "{engine:?}: {latency:?} {service:?}");
    }
}

#[test]
fn a_target_that_stalls_at_the_end_is_not_one_that_keeps_up() {
    // Each operation has a slot, so that none waits to start: only those in flight tell of the stall.
    for (faults, errors) in [("delay=2s@30%", false), ("stall@30%", true)] {
        let target = servers::open("null").unwrap().with_faults(faults.parse().unwrap());
        let load = LoadSpec {
            rate: rate(2_000.0, Arrivals::Constant),
            outstanding: 1_000,
            time_ns: 500_000_000,
            timeout_ns: if errors { 700_000_000 } else { 60_000_000_000 },
            ..servers::spec(&target, 4096)
        };
        let outcome = apply(&load, &target);
        let open = outcome.open_loop.unwrap();
        let in_flight = outcome.in_flight_at_end.unwrap();
        let finished_or_not = outcome.total.operations + in_flight.operations + open.backlog_end;
        assert_eq!((open.offered, finished_or_not), (1_000, 1_000), "{faults}: {in_flight:?}");
        assert!(open.saturated && in_flight.overdue > 100, "{faults}: {in_flight:?}");
        assert!(in_flight.waited_ns.unwrap().max > 300_000_000, "{faults}: {in_flight:?}");
        let [in_time, counted_in] = [outcome.total.latency_ns.unwrap(), in_flight.counted_in_ns.unwrap()];
        assert!(in_time.p99 < 300_000_000 && counted_in.p99 > 500_000_000, "{in_time:?} {counted_in:?}");
        assert_eq!(outcome.errors > 0, errors, "{faults}: {:?}", outcome.error_kinds);
        assert!(outcome.notes.iter().any(|note| note.contains("are the tail")), "{:?}", outcome.notes);
    }
}

#[test]
fn a_blocking_worker_that_is_left_behind_keeps_what_was_offered() {
    let folder = folder();
    let target = target(&folder.path().join("t.img")).with_faults("stall@100%".parse().unwrap());
    let load = LoadSpec {
        engine: EngineKind::Psync,
        outstanding: 1,
        rate: rate(1_000.0, Arrivals::Constant),
        timeout_ns: 300_000_000,
        ..spec(100.0)
    };
    let outcome = apply(&load, &target);
    let open = outcome.open_loop.unwrap();
    assert_eq!((open.offered, outcome.elapsed_ns), (200, load.time_ns));
    assert!(open.saturated && open.backlog_end == 199, "{open:?}");
    assert_eq!(outcome.in_flight_at_end.unwrap().failed, 1);
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
