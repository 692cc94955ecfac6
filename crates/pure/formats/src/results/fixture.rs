//! An outcome for tests.

use serde_json::{Value, json};
use virtbench_record::LoadOutcome;
use virtbench_units::LatencyRecorder;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

/// An outcome of so many reads and writes of 4 KiB, which took 1, 2, 3, ... us. It is made from JSON so
/// that fields with a default need not be named here.
pub fn outcome(reads: u64, writes: u64) -> LoadOutcome {
    let stats = |count: u64| -> Value {
        let mut recorder = LatencyRecorder::new();
        (1..=count).for_each(|us| recorder.record(us * 1000));
        json!({
            "operations": count,
            "bytes": count * 4096,
            "iops": count as f64 / 2.0,
            "bytes_per_second": count as f64 * 2048.0,
            "latency_ns": recorder.summary(),
            "histogram": recorder.encode_histogram().unwrap(),
        })
    };
    let mut total = stats(reads + writes);
    if reads + writes > 0 {
        total["latency_ns"]["max"] = (reads.max(writes) * 1000).into();
    }
    let interval = |start_ns: u64, operations: u64| {
        json!({
            "start_ns": start_ns, "length_ns": 1_000_000_000, "operations": operations,
            "bytes": operations * 4096, "mean_latency_ns": 1000.0,
        })
    };
    let half = (reads + writes) / 2;
    let spec = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 20);
    serde_json::from_value(json!({
        "total": total,
        "read": stats(reads),
        "write": stats(writes),
        "errors": 0,
        "error_kinds": {"EIO": 1},
        "elapsed_ns": 2_000_000_000u64,
        "interrupted": false,
        "own_cpu_ns": [100_000_000, 300_000_000],
        "intervals": [interval(0, half), interval(1_000_000_000, reads + writes - half)],
        "target": {"path": "/x", "kind": "file", "size_bytes": 1 << 20, "direct": true, "alignment_bytes": 512},
        "spec": spec,
        "seed": 1,
        "notes": [],
    }))
    .unwrap()
}
