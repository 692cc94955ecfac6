//! Made-up runs of VMs side by side. Memory throughput is shared evenly on average, and uneven in each
//! moment; the last VM is disturbed most.

use virtbench_record::*;
use virtbench_units::Random;
use virtbench_workload::{MemorySpec, Workload, WorkloadSpec};

use crate::grid::described;
use crate::host::host_use;

const REPETITIONS: u32 = 3;

/// A run of sets; `kvm` because under emulation little could be said.
pub fn sets_provenance(
    study: fn(ColocationPlan) -> Plan,
    workloads: &[&str],
    sets: Vec<SetPlan>,
) -> Provenance {
    let mut facts = described(study(ColocationPlan {
        workloads: workloads.iter().map(|name| (*name).to_owned()).collect(),
        sets,
        repetitions: REPETITIONS,
        ramp_ns: 200_000_000,
        time_ns: 1_000_000_000,
        vcpus: 1,
        memory_bytes: 256 << 20,
        pinned: true,
        disk: "virtio-blk".into(),
        size_bytes: 1 << 30,
        filesystem: None,
        seed: 42,
        homes: Vec::new(),
    }));
    if let Some(guest) = &mut facts.guest {
        guest.accelerator.name = "kvm".into();
    }
    facts
}

fn member(vm: usize, workload: usize) -> MemberPlan {
    MemberPlan { vm: format!("vm{vm}"), workload, share_percent: None }
}

fn set(name: &str, role: SetRole, members: Vec<MemberPlan>) -> SetPlan {
    SetPlan { name: name.into(), role, members }
}

/// One, two and three VMs on two processors.
pub fn neighbours() -> (Provenance, Vec<SetRecord>) {
    let sets = (1..=3).map(|vms| {
        let role = if vms == 1 { SetRole::Alone } else { SetRole::Together };
        set(&vms.to_string(), role, (1..=vms).map(|vm| member(vm, 0)).collect())
    });
    let facts = sets_provenance(Plan::Neighbours, &["memory"], sets.collect());
    let records =
        records(&facts, |set, vm, _| (8e9 - 1e8 * vm as f64) / (set.members.len().max(2) as f64 / 2.0));
    (facts, records)
}

/// Three VMs at shares of saturation.
pub fn deviation() -> (Provenance, Vec<SetRecord>) {
    let share = |vm: usize| MemberPlan { share_percent: Some(8.0 * vm as f64), ..member(vm, 0) };
    let mut sets = vec![set("saturation", SetRole::Saturation, vec![member(1, 0)])];
    sets.extend((1..=3).map(|vm| set(&format!("vm{vm}-alone"), SetRole::Alone, vec![share(vm)])));
    sets.push(set("together", SetRole::Together, (1..=3).map(share).collect()));
    let facts = sets_provenance(Plan::Deviation, &["mailserver"], sets);
    let records = records(&facts, |set, vm, _| match set.role {
        SetRole::Saturation => 1e4,
        SetRole::Alone => 800.0 * vm as f64,
        SetRole::Together => 800.0 * vm as f64 * (1.0 - 0.1 * vm as f64),
    });
    (facts, records)
}

/// Two workloads against each other; the second takes a quarter from the first.
pub fn matrix() -> (Provenance, Vec<SetRecord>) {
    let mut sets = Vec::new();
    for vm in [1, 2] {
        for workload in [0, 1] {
            sets.push(set(&format!("vm{vm}-workload{workload}"), SetRole::Alone, vec![member(vm, workload)]));
        }
    }
    for (first, second) in [(0, 0), (0, 1), (1, 1)] {
        let members = vec![member(1, first), member(2, second)];
        sets.push(set(&format!("{first}-beside-{second}"), SetRole::Together, members));
    }
    let facts = sets_provenance(Plan::Deviation, &["cpu", "memory <b>"], sets);
    let records = records(&facts, |set, _, workload| {
        let beside_memory = set.members.len() == 2 && set.members.iter().any(|member| member.workload == 1);
        if beside_memory && workload == 0 { 75.0 } else { 100.0 }
    });
    (facts, records)
}

fn records(facts: &Provenance, rate: impl Fn(&SetPlan, usize, usize) -> f64) -> Vec<SetRecord> {
    let mut random = Random::new(7);
    let mut all = Vec::new();
    let sets = facts.plan.colocation().map_or(&[][..], |plan| &plan.sets);
    for repetition in 0..REPETITIONS {
        for set in sets {
            let members = set.members.iter().enumerate().map(|(index, member)| {
                let rate = rate(set, member.vm[2..].parse().unwrap(), member.workload)
                    * (1.0 + 0.02 * (random.unit() - 0.5));
                let outcome = JobOutcome::Workload(Box::new(outcome(rate, index as u64)));
                let clock = Some(ClockCheck { drift_ppm: 3.0, uncertainty_ppm: 1.0 });
                let measured = MemberMeasured {
                    outcome,
                    host_elapsed_ns: 1_000_000_000,
                    clock,
                    start: None,
                    host: None,
                };
                MemberRecord { vm: member.vm.clone(), status: MemberStatus::Measured(Box::new(measured)) }
            });
            let host = host_use(120.0, 100.0, 20.0);
            all.push(SetRecord {
                format: FORMAT,
                set: set.name.clone(),
                repetition,
                attempts: 1,
                started_unix_ns: 1,
                start: None,
                host: Some(host),
                processes: Vec::new(),
                members: members.collect(),
            });
        }
    }
    all
}

/// Every other interval belongs to every other VM.
fn outcome(rate: f64, vm: u64) -> WorkloadOutcome {
    let interval = |index: u64| Interval {
        start_ns: index * 100_000_000,
        length_ns: 100_000_000,
        operations: 1,
        bytes: if (index + vm).is_multiple_of(2) { (rate / 5.0) as u64 } else { 1 },
        mean_latency_ns: None,
    };
    WorkloadOutcome {
        metrics: ["copy", "triad"]
            .iter()
            .filter_map(|name| Metric::new(name, "B/s", Better::Higher, vec![rate * 0.9, rate * 1.1]))
            .collect(),
        runs: 2,
        operations: 10,
        bytes: rate as u64,
        latency_ns: None,
        histogram: None,
        errors: 0,
        error_kinds: Default::default(),
        elapsed_ns: 1_000_000_000,
        interrupted: false,
        threads: 1,
        own_cpu_ns: [1, 1],
        footprint: None,
        steal_ns: Some(0),
        command: None,
        intervals: (0..10).map(interval).collect(),
        spec: WorkloadSpec::new(Workload::Memory(MemorySpec::default())),
        notes: Vec::new(),
    }
}
