//! A made-up run of four configurations. `virtio-blk` leads in sequential work and `nvme` in random;
//! a qcow2 file under `virtio-blk` makes no difference; `lsi53c895a` takes one request at a time and the
//! most CPU. What disturbs the host disturbs all four alike; each has 1 % of noise of its own.

use virtbench_record::*;
use virtbench_units::Random;

use crate::grid::{described, measured_mut, plan, record};
use crate::host::host_use;

pub const NAMES: [&str; 4] = ["virtio-blk", "nvme", "lsi53c895a", "virtio-blk@qcow2"];

/// Three block sizes of [ESX Adapters 2006]'s four kinds of I/O.
pub fn adapters_plan(repetitions: u32) -> GridPlan {
    GridPlan {
        environments: NAMES.map(String::from).to_vec(),
        ..plan(&[4096, 16384, 65536], &[0, 100], &[0, 100], repetitions)
    }
}

pub fn adapters_provenance(plan: GridPlan) -> Provenance {
    let environments = plan.environments.clone();
    let setups = environments.iter().map(|name| setup(name)).collect();
    let idle = [GuestsState::Running, GuestsState::Stopped].map(|guests| idle(guests, &environments));
    Provenance { setups, idle: idle.into(), ..described(Plan::Adapters(plan)) }
}

fn setup(name: &str) -> SetupFacts {
    let (adapter, backing) = name.split_once('@').unwrap_or((name, "raw"));
    let one = adapter == "lsi53c895a";
    let not_honoured =
        one.then(|| NotHonoured { setting: "queues".into(), asked: "4".into(), found: "1".into() });
    SetupFacts {
        name: name.into(),
        adapter: adapter.into(),
        summary: format!("{adapter}, made up"),
        settings: [("queues".to_owned(), "4".to_owned())].into(),
        backing: BackingFacts {
            name: backing.into(),
            description: format!("a {backing} file"),
            preparation: "written whole".into(),
            allocated_bytes: 1 << 30,
        },
        command_line: vec!["qemu-system-x86_64".into(), "-device".into(), adapter.into()],
        server_command_line: Vec::new(),
        boot_ns: 4_000_000_000,
        found: Some(DeviceFacts {
            name: "sda".into(),
            driver: Some(adapter.replace('-', "_")),
            queues: Some(if one { 1 } else { 4 }),
            queue_tags: Some(if one { 1 } else { 256 }),
            scheduler: Some("none".into()),
            write_cache: Some("write back".into()),
            rotational: Some(true),
            ..DeviceFacts::default()
        }),
        not_honoured: not_honoured.into_iter().collect(),
    }
}

fn idle(guests: GuestsState, environments: &[String]) -> IdleBaseline {
    let percent = if guests == GuestsState::Running { 2.5 } else { 0.25 };
    let processes: Vec<ProcessUse> =
        environments.iter().map(|name| process(name, ProcessRole::IdleGuest, percent)).collect();
    IdleBaseline {
        guests,
        environments: environments.to_vec(),
        started_unix_ns: 1_750_000_000_000_000_000,
        elapsed_ns: 1_000_000_000,
        host: host(percent * 4.0 + 1.0),
        processes,
    }
}

fn process(environment: &str, role: ProcessRole, percent: f64) -> ProcessUse {
    ProcessUse {
        name: "qemu-system-x86_64".into(),
        environment: Some(environment.into()),
        role,
        threads: 4,
        user_percent: percent * 0.75,
        system_percent: percent * 0.25,
    }
}

fn host(cpu_percent: f64) -> HostUse {
    host_use(cpu_percent, cpu_percent * 0.6, cpu_percent * 0.4)
}

/// How many times the base's rate, and what CPU use.
fn factors(name: &str, random: bool) -> (f64, f64) {
    match (name, random) {
        ("virtio-blk" | "virtio-blk@qcow2", false) => (1.0, 100.0),
        ("virtio-blk" | "virtio-blk@qcow2", true) => (0.7, 90.0),
        ("nvme", false) => (0.8, 110.0),
        ("nvme", true) => (1.0, 95.0),
        _ => (0.3, 120.0),
    }
}

/// All records of the plan, configurations in turn at every point.
pub fn adapters_records(plan: &GridPlan) -> Vec<PointRecord> {
    let mut noise = Random::new(plan.seed);
    let mut records = Vec::new();
    for &block_bytes in &plan.blocks_bytes {
        for &read_percent in &plan.read_percents {
            for &random_percent in &plan.random_percents {
                let point = PointKey { block_bytes, read_percent, random_percent };
                for repetition in 0..plan.repetitions {
                    let weather = u64::from(repetition) * 1_000 + block_bytes;
                    for name in NAMES {
                        let mut one = record(point, "vm", repetition, &mut Random::new(weather));
                        one.environment = name.into();
                        scale(&mut one, name, random_percent > 0, 1.0 + 0.01 * (noise.unit() - 0.5));
                        records.push(one);
                    }
                }
            }
        }
    }
    records
}

fn scale(record: &mut PointRecord, name: &str, random: bool, noise: f64) {
    let (rate, cpu_percent) = factors(name, random);
    let measured = measured_mut(record);
    let total = &mut measured.outcome.total;
    total.iops *= rate * noise;
    total.bytes_per_second *= rate * noise;
    if let Some(latency) = &mut total.latency_ns {
        latency.mean /= rate * noise;
    }
    measured.host = host(cpu_percent);
    measured.processes = NAMES
        .iter()
        .map(|other| {
            let (role, percent) = if *other == name {
                (ProcessRole::MeasuredGuest, cpu_percent * 0.8)
            } else {
                (ProcessRole::IdleGuest, 0.25)
            };
            process(other, role, percent)
        })
        .collect();
}
