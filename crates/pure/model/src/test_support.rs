//! Made-up facts and chance that more than one model's tests need.

use virtbench_record::{
    AcceleratorFacts, DirectionStats, DiskFacts, FORMAT, GuestFacts, HostFacts, LoadOutcome, Measured, Plan,
    PointKey, PointRecord, PointStatus, Provenance, RUN_FORMAT, TargetFacts, TargetKind,
};
use virtbench_samples::host::host_use;
use virtbench_units::Random;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

/// A normal variate (Box and Muller).
pub(crate) fn normal(random: &mut Random) -> f64 {
    (-2.0 * (1.0 - random.unit()).ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
}

pub(crate) fn host(processors: u32) -> HostFacts {
    HostFacts {
        kernel: "k".into(),
        distribution: "d".into(),
        cpu: "c".into(),
        processors,
        memory_bytes: 1 << 30,
        hypervisor: None,
        virtualization: None,
        tuning: None,
        disk: DiskFacts { filesystem: "ext4".into(), ..DiskFacts::default() },
    }
}

pub(crate) fn measured(iops: f64, cpu_percent: f64) -> Measured {
    let total = DirectionStats { iops, bytes_per_second: iops * 4096.0, ..DirectionStats::default() };
    let access = AccessSpec::single(AccessLine::new(4096, 100.0, 0.0));
    let target = TargetFacts {
        path: "null".into(),
        kind: TargetKind::Null,
        size_bytes: 1 << 20,
        direct: false,
        alignment_bytes: 1,
    };
    let spec = LoadSpec {
        outstanding: 1,
        workers: 1,
        ramp_ns: 0,
        time_ns: 1_000_000_000,
        interval_ns: 100_000_000,
        direct: false,
        seed: 1,
        ..LoadSpec::new(access, 1 << 20)
    };
    let outcome = LoadOutcome { read: total.clone(), total, ..LoadOutcome::empty(spec, target) };
    let host = host_use(cpu_percent, cpu_percent, 0.0);
    Measured { outcome, host, processes: Vec::new(), host_elapsed_ns: 1_000_000_000, clock: None }
}

pub(crate) fn record(key: PointKey, environment: &str, repetition: u32, status: PointStatus) -> PointRecord {
    PointRecord {
        format: FORMAT,
        point: key,
        environment: environment.into(),
        repetition,
        started_unix_ns: 0,
        status,
    }
}

pub(crate) fn good(
    key: PointKey,
    environment: &str,
    repetition: u32,
    iops: f64,
    cpu_percent: f64,
) -> PointRecord {
    record(key, environment, repetition, PointStatus::Measured(Box::new(measured(iops, cpu_percent))))
}

/// What `run.json` says of a run with this plan.
pub(crate) fn provenance(plan: Plan, processors: u32, vcpus: u32) -> Provenance {
    let accelerator = AcceleratorFacts { name: "kvm".into(), why: String::new() };
    let guest = GuestFacts {
        accelerator,
        qemu: "q".into(),
        kernel: "k".into(),
        vcpus,
        memory_bytes: 1 << 28,
        adapter: "virtio-blk".into(),
        command_line: Vec::new(),
        boot_ns: 1,
        crossing: None,
    };
    Provenance {
        format: RUN_FORMAT,
        version: "0".into(),
        command: Vec::new(),
        working_folder: None,
        started_unix_s: 0,
        plan,
        host: host(processors),
        guest: Some(guest),
        other_guests: Vec::new(),
        crossing: None,
        setups: Vec::new(),
        machines: Vec::new(),
        appliances: Vec::new(),
        idle: Vec::new(),
        notes: Vec::new(),
    }
}
