//! Grids of points natively and in a VM. Throughput follows a simple model of a disk with a fixed cost for each operation, each
//! byte and each seek; the VM adds a fixed cost to every operation; noise of a few percent is drawn
//! from the seed.

use virtbench_record::*;
use virtbench_units::{LatencyRecorder, Random};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::host::host_use;

pub const ADAPTER: &str = "virtio-blk";
const OUTSTANDING: u32 = 16;
/// Operations whose latencies are drawn for a point; the counts tell of more.
const LATENCIES: u64 = 2_000;

/// A plan over the given grid.
pub fn plan(blocks: &[u64], reads: &[u8], randoms: &[u8], repetitions: u32) -> GridPlan {
    GridPlan {
        grid: "synthetic".into(),
        blocks_bytes: blocks.to_vec(),
        read_percents: reads.to_vec(),
        random_percents: randoms.to_vec(),
        repetitions,
        outstanding: OUTSTANDING,
        workers: 1,
        ramp_ns: 200_000_000,
        time_ns: 1_000_000_000,
        size_bytes: 1 << 30,
        environments: vec!["native".into(), "vm".into()],
        seed: 42,
    }
}

/// A grid of 18 points with three repetitions.
pub fn small_plan() -> GridPlan {
    plan(&[4096, 65536], &[0, 50, 100], &[0, 50, 100], 3)
}

/// A run natively and in a VM.
pub fn provenance(plan: GridPlan) -> Provenance {
    described(Plan::NativeVsVm(plan))
}

/// A run with this plan.
pub fn described(plan: Plan) -> Provenance {
    let arguments = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    Provenance {
        format: RUN_FORMAT,
        version: "0.1.0-synthetic".into(),
        command: arguments("virtbench compare --grid synthetic --seed 42"),
        working_folder: None,
        started_unix_s: 1_750_000_000,
        plan,
        host: HostFacts {
            kernel: "6.1.0-synthetic".into(),
            distribution: "Example Linux 12".into(),
            cpu: "Made-up Processor 3000".into(),
            processors: 2,
            memory_bytes: 8 << 30,
            hypervisor: None,
            virtualization: None,
            tuning: None,
            disk: DiskFacts {
                filesystem: "ext4".into(),
                device: Some("/dev/example".into()),
                rotational: Some(false),
                scheduler: Some("none".into()),
                write_cache: Some("write back".into()),
            },
        },
        other_guests: Vec::new(),
        crossing: None,
        guest: Some(GuestFacts {
            accelerator: AcceleratorFacts {
                name: "tcg".into(),
                why: "a probe guest did not boot under KVM within 10 s".into(),
            },
            qemu: "9.0.0-synthetic".into(),
            kernel: "6.1.0-synthetic".into(),
            vcpus: 1,
            memory_bytes: 512 << 20,
            adapter: ADAPTER.into(),
            command_line: arguments(
                "qemu-system-x86_64 -machine q35,accel=tcg -m 512M -smp 1 -nographic -drive \
                 if=none,id=d,file=disk.raw,format=raw,cache=none -device virtio-blk-pci,drive=d",
            ),
            boot_ns: 4_200_000_000,
            crossing: None,
        }),
        setups: Vec::new(),
        machines: Vec::new(),
        appliances: Vec::new(),
        idle: Vec::new(),
        notes: vec!["Every figure of this run is synthetic: nothing was measured.".into()],
    }
}

/// All records of a plan, with histograms inside them.
pub fn records(plan: &GridPlan) -> Vec<PointRecord> {
    let mut random = Random::new(plan.seed);
    let mut records = Vec::new();
    for &block_bytes in &plan.blocks_bytes {
        for &read_percent in &plan.read_percents {
            for &random_percent in &plan.random_percents {
                let point = PointKey { block_bytes, read_percent, random_percent };
                for repetition in 0..plan.repetitions {
                    for environment in ["native", "vm"] {
                        records.push(record(point, environment, repetition, &mut random));
                    }
                }
            }
        }
    }
    records
}

/// One measured repetition.
pub fn record(point: PointKey, environment: &str, repetition: u32, random: &mut Random) -> PointRecord {
    let measured = measured(point, environment == "vm", random);
    PointRecord {
        format: FORMAT,
        point,
        environment: environment.into(),
        repetition,
        started_unix_ns: 1_750_000_000_000_000_000 + u64::from(repetition) * 1_000_000_000,
        status: PointStatus::Measured(Box::new(measured)),
    }
}

/// A repetition that could not be measured.
pub fn unavailable(point: PointKey, environment: &str, repetition: u32, why: &str) -> PointRecord {
    let mut record = record(point, environment, repetition, &mut Random::new(1));
    record.status = PointStatus::Unavailable { why: why.into() };
    record
}

/// The measurement of a record, to be changed by a test.
pub fn measured_mut(record: &mut PointRecord) -> &mut Measured {
    match &mut record.status {
        PointStatus::Measured(measured) => measured,
        PointStatus::Unavailable { why } => panic!("not measured: {why}"),
    }
}

fn measured(point: PointKey, vm: bool, random: &mut Random) -> Measured {
    let PointKey { block_bytes, read_percent, random_percent } = point;
    let (read, seek) = (f64::from(read_percent) / 100.0, f64::from(random_percent) / 100.0);
    let mixing = 4.0 * read * (1.0 - read);
    let disk_us = 9.0 + block_bytes as f64 / 900.0 + 24.0 * seek + 14.0 * (1.0 - read) + 10.0 * mixing;
    let vm_us = if vm { 18.0 + 12.0 * seek } else { 0.0 };
    let noise = 1.0 + 0.05 * (random.unit() - 0.5);
    let iops = 1e6 / (disk_us + vm_us) * noise;
    let latency_ns = 1e9 / iops * f64::from(OUTSTANDING);
    let share =
        |part: f64, random: &mut Random| direction(iops * part, block_bytes, latency_ns, part, random);
    let total = direction(iops, block_bytes, latency_ns, 0.0, random);
    let target = TargetFacts {
        path: if vm { "/dev/vda" } else { "disk.raw" }.into(),
        kind: if vm { TargetKind::BlockDevice } else { TargetKind::File },
        size_bytes: 1 << 30,
        direct: true,
        alignment_bytes: 512,
    };
    let outcome = LoadOutcome {
        total,
        read: share(read, random),
        write: share(1.0 - read, random),
        elapsed_ns: 1_000_000_000,
        own_cpu_ns: [120_000_000, 230_000_000],
        seed: 42,
        ..LoadOutcome::empty(load(point), target)
    };
    let cpu_percent = (if vm { 130.0 } else { 20.0 + iops / 900.0 }) * (1.0 + 0.05 * (random.unit() - 0.5));
    let host = host_use(cpu_percent, cpu_percent * 0.4, cpu_percent * 0.6);
    let clock = vm.then_some(ClockCheck { drift_ppm: 12.0, uncertainty_ppm: 40.0 });
    Measured { outcome, host, processes: Vec::new(), host_elapsed_ns: 1_000_400_000, clock }
}

/// `histogram_share` 0 keeps the histogram out of the record, as for the total of both directions.
fn direction(
    iops: f64,
    block_bytes: u64,
    latency_ns: f64,
    histogram_share: f64,
    random: &mut Random,
) -> DirectionStats {
    if iops <= 0.0 {
        return DirectionStats::default();
    }
    let mut recorder = LatencyRecorder::new();
    for _ in 0..LATENCIES {
        let tail = 0.12 / (1.0 - 0.999 * random.unit()).sqrt();
        recorder.record((latency_ns * (0.7 + 0.2 * random.unit() + tail)) as u64);
    }
    let histogram = (histogram_share > 0.0).then(|| recorder.encode_histogram().unwrap());
    DirectionStats {
        operations: iops as u64,
        bytes: iops as u64 * block_bytes,
        iops,
        bytes_per_second: iops * block_bytes as f64,
        latency_ns: recorder.summary(),
        histogram,
    }
}

fn load(point: PointKey) -> LoadSpec {
    let line =
        AccessLine::new(point.block_bytes, f64::from(point.read_percent), f64::from(point.random_percent));
    LoadSpec {
        outstanding: OUTSTANDING,
        workers: 1,
        ramp_ns: 200_000_000,
        time_ns: 1_000_000_000,
        interval_ns: 100_000_000,
        seed: 42,
        ..LoadSpec::new(AccessSpec::single(line), 1 << 30)
    }
}
