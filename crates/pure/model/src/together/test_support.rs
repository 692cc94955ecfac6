//! Made-up runs of sets of machines.

use virtbench_record::*;
use virtbench_samples::host::host_use;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec, MemorySpec, Workload, WorkloadSpec};

pub(crate) fn provenance(processors: u32, vcpus: u32, sets: Vec<SetPlan>) -> Provenance {
    let plan = Plan::Neighbours(ColocationPlan {
        workloads: vec!["w".into()],
        sets,
        repetitions: 3,
        ramp_ns: 0,
        time_ns: 1,
        vcpus,
        memory_bytes: 1 << 28,
        pinned: false,
        disk: "virtio-blk".into(),
        size_bytes: 1 << 20,
        filesystem: None,
        seed: 1,
        homes: Vec::new(),
    });
    crate::test_support::provenance(plan, processors, vcpus)
}

pub(crate) fn set(name: &str, role: SetRole, vms: usize, share_percent: Option<f64>) -> SetPlan {
    let member = |number| MemberPlan { vm: format!("vm{number}"), workload: 0, share_percent };
    SetPlan { name: name.into(), role, members: (1..=vms).map(member).collect() }
}

pub(crate) fn member(vm: usize, outcome: JobOutcome) -> MemberRecord {
    let measured = MemberMeasured {
        host_elapsed_ns: outcome.elapsed_ns(),
        outcome,
        clock: None,
        start: None,
        host: None,
    };
    MemberRecord { vm: format!("vm{vm}"), status: MemberStatus::Measured(Box::new(measured)) }
}

pub(crate) fn record(set: &str, repetition: u32, busy_percent: f64, members: Vec<MemberRecord>) -> SetRecord {
    let host = host_use(busy_percent, busy_percent, 0.0);
    SetRecord {
        format: FORMAT,
        set: set.into(),
        repetition,
        attempts: 1,
        started_unix_ns: 1,
        start: None,
        host: Some(host),
        processes: Vec::new(),
        members,
    }
}

/// A memory workload with these samples of its one figure.
pub(crate) fn workload(samples: &[f64]) -> JobOutcome {
    JobOutcome::Workload(Box::new(WorkloadOutcome {
        metrics: Metric::new("score", "operations/min", Better::Higher, samples.to_vec())
            .into_iter()
            .collect(),
        runs: 1,
        operations: 1,
        bytes: 0,
        latency_ns: None,
        histogram: None,
        errors: 0,
        error_kinds: Default::default(),
        elapsed_ns: 1_000_000_000,
        interrupted: false,
        threads: 1,
        own_cpu_ns: [0, 0],
        footprint: None,
        steal_ns: Some(100_000_000),
        command: None,
        intervals: Vec::new(),
        spec: WorkloadSpec::new(Workload::Memory(MemorySpec::default())),
        notes: Vec::new(),
    }))
}

/// A load of so many operations a second at this mean latency.
pub(crate) fn load(iops: f64, latency_ns: u64) -> JobOutcome {
    let spec = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20);
    let mut latency = virtbench_units::LatencyRecorder::new();
    latency.record(latency_ns);
    let mut outcome = LoadOutcome::empty(spec, TargetFacts::null(1 << 20));
    outcome.total.iops = iops;
    outcome.total.latency_ns = latency.summary();
    JobOutcome::Load(Box::new(outcome))
}
