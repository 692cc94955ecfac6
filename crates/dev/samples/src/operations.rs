//! A study of management operations that nobody has measured.

use std::collections::BTreeMap;

use virtbench_record::{
    CloneKind, FailureKind, JobFigure, JobSummary, ManagementProcess, ManagementUse, OperationKind,
    OperationNumbers, OperationsKey, OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord,
    Phase, Status,
};
use virtbench_units::LatencyRecorder;

use crate::host::host_use;

/// Two rates at 10 and at 20 VMs.
pub fn plan() -> OperationsPlan {
    OperationsPlan {
        platform: "libvirt+qemu:///system?pool=default".into(),
        destination: None,
        mix: BTreeMap::from([(OperationKind::PowerOn, 1), (OperationKind::PowerOff, 1)]),
        left_out: vec![OperationKind::Migrate],
        vms: vec![10, 20],
        load: OperationsLoad::Open(vec![100.0, 500.0]),
        pieces: 4,
        piece_ns: 60_000_000_000,
        warm_ns: 0,
        clones: vec![CloneKind::Full],
        limit_ns: 60_000_000_000,
        most_at_once: 64,
        memory_bytes: 96 << 20,
        disk_bytes: 64 << 20,
        accelerator: "tcg".into(),
        seed: 1,
        tenants: Vec::new(),
        tenant_workload: None,
    }
}

/// What came of `count` operations that took so long, a tenth of it in waiting and half of it until they were seen.
pub fn numbers(count: u64, latency_ns: u64, failed: u64) -> OperationNumbers {
    let recorded = |length_ns: u64| {
        let mut recorder = LatencyRecorder::new();
        (0..count).for_each(|_| recorder.record(length_ns));
        recorder
    };
    let phases = [
        (Phase::Waiting, latency_ns / 10),
        (Phase::Running, latency_ns * 4 / 10),
        (Phase::Seen, latency_ns / 2),
    ];
    let phases = phases.into_iter().filter_map(|(phase, length)| Some((phase, recorded(length).summary()?)));
    OperationNumbers {
        done: count,
        failed: if failed > 0 { BTreeMap::from([(FailureKind::Busy, failed)]) } else { BTreeMap::new() },
        retries: 0,
        latency_ns: recorded(latency_ns).summary(),
        phases_ns: phases.collect(),
        job: BTreeMap::new(),
        job_unavailable: None,
        histogram: recorded(latency_ns).encode_histogram().ok(),
    }
}

/// A piece of these.
pub fn record(
    vms: u32,
    piece: u32,
    per_minute: Option<f64>,
    operations: BTreeMap<OperationKind, OperationNumbers>,
) -> OperationsRecord {
    let host = host_use(100.0, 90.0, 10.0);
    let latency_ns = operations.values().find_map(|one| one.latency_ns);
    let intended =
        operations.values().map(|one| one.done + one.failed.values().sum::<u64>()).sum::<u64>() + 1;
    OperationsRecord::new(
        OperationsKey { vms, piece, per_minute },
        u64::from(piece) * 60_000_000_000,
        Status::measured(OperationsMeasured {
            elapsed_ns: 60_000_000_000,
            intended,
            not_issued: 1,
            operations,
            clones: BTreeMap::new(),
            latency_ns,
            steady: None,
            outage_ns: 0,
            vms_at_end: vms,
            running_at_end: vms / 2,
            host,
            management: Some(management()),
            tenants: Vec::new(),
            first_failures: vec!["power_on: busy".into()],
        }),
    )
}

/// libvirt's daemon at an eighth of a processor.
fn management() -> ManagementUse {
    let daemon =
        ManagementProcess { name: "libvirtd".into(), pid: 77, cpu_percent: 12.5, resident_bytes: 48 << 20 };
    ManagementUse { processes: vec![daemon], unavailable: None }
}

/// Power on takes 100 ms at 10 VMs and 300 ms at 20, and double that under the heavier rate; power off takes 20 ms always.
pub fn records() -> Vec<OperationsRecord> {
    let mut records = Vec::new();
    for (vms, on_ms) in [(10, 100), (20, 300)] {
        for piece in 0..4 {
            let (rate, factor) = if piece % 2 == 0 { (100, 1) } else { (500, 2) };
            let ms = |ms: u64| (ms + u64::from(piece)) * 1_000_000;
            let operations = BTreeMap::from([
                (OperationKind::PowerOn, numbers(rate / 2, ms(on_ms * factor), u64::from(piece / 2))),
                (OperationKind::PowerOff, numbers(rate / 2, ms(20), 0)),
            ]);
            records.push(record(vms, piece, Some(rate as f64), operations));
        }
    }
    records
}

/// Three ways to clone take turns in each of four pieces: a linked clone takes two fifths of a full one's time and a reflink a
/// tenth, while the pieces themselves differ sixfold.
pub fn of_clones() -> (OperationsPlan, Vec<OperationsRecord>) {
    let clones = vec![CloneKind::Full, CloneKind::Linked, CloneKind::Reflink];
    let plan = OperationsPlan {
        clones: clones.clone(),
        vms: vec![10],
        load: OperationsLoad::Closed(2),
        mix: BTreeMap::from([(OperationKind::Clone, 1), (OperationKind::Remove, 1)]),
        ..plan()
    };
    let records = (0..4).map(|piece| {
        let full_ns = 1_000_000_000 * [1, 6, 2, 4][piece as usize];
        let lengths = [full_ns, full_ns * 2 / 5, full_ns / 10];
        let mut record =
            record(10, piece, None, BTreeMap::from([(OperationKind::Clone, numbers(30, full_ns / 2, 0))]));
        if let Status::Measured(measured) = &mut record.status {
            measured.clones =
                clones.iter().zip(lengths).map(|(way, length)| (*way, numbers(10, length, 0))).collect();
        }
        record
    });
    (plan, records.collect())
}

/// A platform that tells of migrations as jobs: each takes a second, of which guests are paused for a tenth.
pub fn of_jobs() -> (OperationsPlan, Vec<OperationsRecord>) {
    let told = [
        (JobFigure::ElapsedNs, 1_000_000_000),
        (JobFigure::DowntimeNs, 100_000_000),
        (JobFigure::MovedBytes, 96 << 20),
    ];
    let told = told.map(|(figure, value)| (figure, JobSummary { jobs: 10, mean: value as f64, most: value }));
    let migrate = OperationNumbers { job: told.into(), ..numbers(10, 1_200_000_000, 0) };
    let snapshot =
        OperationNumbers { job_unavailable: Some("nothing is told".into()), ..numbers(5, 50_000_000, 0) };
    let operations =
        BTreeMap::from([(OperationKind::Migrate, migrate), (OperationKind::CreateSnapshot, snapshot)]);
    (OperationsPlan { vms: vec![10], ..plan() }, vec![record(10, 0, Some(100.0), operations)])
}
