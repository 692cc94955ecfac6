//! What else differs between two runs: a change of figures may come from there.

use virtbench_record::{DiskFacts, GuestFacts, HostFacts, Provenance};

/// Each difference of version, plan, host or guest, in words.
pub(crate) fn differences(before: &Provenance, after: &Provenance) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, before: &str, after: &str| {
        if before != after {
            found.push(format!("{what}: {before} before, {after} after"));
        }
    };
    note("virtbench", &before.version, &after.version);
    host(&before.host, &after.host, "", &mut note);
    for machine in &before.machines {
        let name = &machine.environment;
        if let Some(other) = after.machines.iter().find(|other| other.environment == *name) {
            host(&machine.facts, &other.facts, &format!("{name}: "), &mut note);
        }
    }
    if let (Some(before), Some(after)) = (&before.guest, &after.guest) {
        guest(before, after, &mut note);
    }
    if let Some(part) = before.plan.first_difference(&after.plan) {
        found.push(format!("{part} of the two plans"));
    }
    found
}

fn host(before: &HostFacts, after: &HostFacts, whose: &str, note: &mut impl FnMut(&str, &str, &str)) {
    let below = |host: &HostFacts| host.hypervisor.clone().unwrap_or_else(|| "none".into());
    note(&format!("{whose}processor"), &before.cpu, &after.cpu);
    note(&format!("{whose}processors"), &before.processors.to_string(), &after.processors.to_string());
    note(
        &format!("{whose}memory in bytes"),
        &before.memory_bytes.to_string(),
        &after.memory_bytes.to_string(),
    );
    note(&format!("{whose}kernel"), &before.kernel, &after.kernel);
    note(&format!("{whose}distribution"), &before.distribution, &after.distribution);
    note(&format!("{whose}hypervisor below it"), &below(before), &below(after));
    note(&format!("{whose}storage"), &storage(&before.disk), &storage(&after.disk));
}

fn storage(disk: &DiskFacts) -> String {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
    format!("{} on {}, scheduler {}", disk.filesystem, known(&disk.device), known(&disk.scheduler))
}

fn guest(before: &GuestFacts, after: &GuestFacts, note: &mut impl FnMut(&str, &str, &str)) {
    note("accelerator", &before.accelerator.name, &after.accelerator.name);
    note("QEMU", &before.qemu, &after.qemu);
    note("the guest's kernel", &before.kernel, &after.kernel);
    note("the guest's processors", &before.vcpus.to_string(), &after.vcpus.to_string());
    note("the guest's memory in bytes", &before.memory_bytes.to_string(), &after.memory_bytes.to_string());
    note("the guest's adapter", &before.adapter, &after.adapter);
}
