//! Where the figures come from: everything needed to judge or repeat the run.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use maud::{Markup, html};
use virtbench_model::{MachineUse, machine_use};
use virtbench_record::{
    ApplianceRoot, ApplianceSide, ApplicationLoad, ApplicationPlan, CaseSet, ColocationPlan, ComparePlan,
    DesktopLink, DesktopNumbers, DesktopsPlan, DiskFacts, GridPlan, GuestFacts, HostFacts, JobOutcome,
    OltpStudyPlan, OltpUsers, OperationsLoad, OperationsPlan, Plan, PointRecord, PredictionsPlan, Provenance,
    SetRecord, TileMemberPlan, TileNumbers, TilesPlan,
};
use virtbench_units::{format_bytes, format_duration_ns};

use crate::format::{count, shell_line, trimmed};

/// When the run began, in UTC.
pub(crate) fn started(provenance: &Provenance) -> String {
    moment(provenance.started_unix_s)
}

/// Where and when it was measured, in a line.
pub(crate) fn place(provenance: &Provenance) -> String {
    format!("{} · {}", provenance.host.cpu, started(provenance))
}

/// So many seconds after 1970 began, in UTC, as RFC 3339 has it.
#[must_use]
pub fn moment(unix_s: u64) -> String {
    UNIX_EPOCH.checked_add(Duration::from_secs(unix_s)).filter(|_| unix_s < LAST_YEAR_S).map_or_else(
        || format!("{unix_s} s since 1970"),
        |time| humantime::format_rfc3339_seconds(time).to_string(),
    )
}

/// The end of the year 9999, in seconds since 1970: dates have four digits.
const LAST_YEAR_S: u64 = 253_402_300_800;

/// The notes of a run of points, then those of its measurements, each once.
pub(crate) fn of_points(provenance: &Provenance, records: &[PointRecord]) -> Markup {
    section(provenance, &notes(provenance, records), &|environment| machine_use(records, environment))
}

/// The same of a run of sets of machines.
pub(crate) fn of_sets(provenance: &Provenance, records: &[SetRecord]) -> Markup {
    let mut notes = provenance.notes.clone();
    for member in records.iter().flat_map(|record| &record.members) {
        let of_member = member.measured().map(|measured| match &measured.outcome {
            JobOutcome::Load(load) => &load.notes,
            JobOutcome::Workload(workload) => &workload.notes,
        });
        for note in of_member.into_iter().flatten().map(|note| format!("{}: {note}", member.vm)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    section(provenance, &notes, &|_| None)
}

fn predictions(plan: &PredictionsPlan) -> Markup {
    let names: Vec<&str> = plan.cases.iter().map(|case| case.name.as_str()).collect();
    html! {
        dl.facts {
            (fact("Applications", &names.join(", ")))
            (fact("Set", plan.set.map_or("not said", CaseSet::name)))
            (fact("Trials of each", &plan.trials.to_string()))
            (fact("Runs in a trial, on either side", &plan.runs.to_string()))
            (fact("Method", plan.method.as_deref().unwrap_or("the one that fits")))
            (fact("Disk of the VM", &format!(
                "{}, {}, {}", plan.adapter, format_bytes(plan.size_bytes), plan.filesystem
            )))
        }
    }
}

fn colocation(plan: &ColocationPlan) -> Markup {
    let sets: Vec<String> = plan.sets.iter().map(|set| set.name.clone()).collect();
    let filesystem = plan.filesystem.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    html! {
        dl.facts {
            (fact("Workloads", &plan.workloads.join("; ")))
            (fact("Sets of VMs", &sets.join(", ")))
            (fact("Repetitions", &plan.repetitions.to_string()))
            @if plan.homes.is_empty() {
                (fact("Each VM", &format!(
                    "{}, {}", count(plan.vcpus as usize, "virtual processor"), format_bytes(plan.memory_bytes)
                )))
                (fact("Held to processors", if plan.pinned { "yes, in turns" } else { "no" }))
                (fact("Disk of each", &format!("{}, {}{filesystem}", plan.disk, format_bytes(plan.size_bytes))))
            } @else {
                @for home in &plan.homes { (fact(&home.vm, &format!("{}: {}", home.environment, home.uri))) }
                (fact("Disk or test file of each", &format_bytes(plan.size_bytes)))
            }
        }
    }
}

fn compare(plan: &ComparePlan) -> Markup {
    html! {
        (grid(&plan.grid))
        dl.facts {
            @for (name, uri) in plan.grid.environments.iter().zip(&plan.uris) { (fact(name, uri)) }
        }
    }
}

fn oltp(plan: &OltpStudyPlan) -> Markup {
    let users = match &plan.users {
        OltpUsers::Auto { most } => format!("raised until nothing is gained, {most} at most"),
        OltpUsers::Given(numbers) => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    html! {
        dl.facts {
            (sides(&plan.sides))
            (fact("Warehouses", &plan.warehouses.to_string()))
            (fact("Users", &users))
            (fact("Measuring", &format!(
                "{} after {}; {} in the search", format_duration_ns(plan.time_ns), format_duration_ns(plan.ramp_up_ns), format_duration_ns(plan.search_ns)
            )))
            (fact("Repetitions", &plan.repetitions.to_string()))
            (fact("Root", &plan.root))
        }
    }
}

fn operations(plan: &OperationsPlan) -> Markup {
    let load = match &plan.load {
        OperationsLoad::Open(rates) => {
            let rates: Vec<String> = rates.iter().map(|rate| format!("{rate}/min")).collect();
            format!("open loop, {}", rates.join(" and "))
        }
        OperationsLoad::Closed(clients) => format!("closed loop, {}", count(*clients as usize, "client")),
        OperationsLoad::Max { limit_ns } => {
            format!("the highest rate with 95 % of operations within {}", format_duration_ns(*limit_ns))
        }
    };
    let mix: Vec<String> =
        plan.mix.iter().map(|(kind, share)| format!("{} {share}", kind.name().replace('_', " "))).collect();
    let vms: Vec<String> = plan.vms.iter().map(u32::to_string).collect();
    let clones: Vec<&str> = plan.clones.iter().map(|way| way.name()).collect();
    html! {
        dl.facts {
            (fact("Platform", &plan.platform))
            @if let Some(destination) = &plan.destination { (fact("Migrations to", destination)) }
            (fact("VMs", &format!(
                "{}; {} of memory, a disk of {}", vms.join(", "), format_bytes(plan.memory_bytes), format_bytes(plan.disk_bytes)
            )))
            (fact("Load", &load))
            (fact("Mix", &mix.join(", ")))
            (fact("Pieces", &format!("{} of {}", plan.pieces, format_duration_ns(plan.piece_ns))))
            @if !plan.tenants.is_empty() { (fact("Tenants", &plan.tenants.join(", "))) }
            @if let Some(workload) = &plan.tenant_workload { (fact("What tenants do", workload)) }
            (fact("Disks are cloned", &clones.join(", ")))
            (fact("Time limit of an operation", &format_duration_ns(plan.limit_ns)))
        }
    }
}

fn sides(sides: &[ApplianceSide]) -> Markup {
    html! {
        @for side in sides {
            (fact(&side.name, &format!(
                "{}, {}, {}",
                if side.vm { "a VM" } else { "natively" },
                count(side.vcpus as usize, "processor"),
                format_bytes(side.memory_bytes)
            )))
        }
    }
}

fn application(plan: &ApplicationPlan) -> Markup {
    let load = |load: &ApplicationLoad| format!("{}: {}", load.appliance, shell_line(&load.client));
    html! {
        dl.facts {
            (sides(&plan.sides))
            (fact("Client", &load(&plan.load)))
            @for words in &plan.load.prepare { (fact("Data filled by", &shell_line(words))) }
            @for metric in &plan.metrics { (fact(&format!("{} found by", metric.name), &metric.pattern)) }
            (fact("Repetitions", &plan.repetitions.to_string()))
            (fact("Neighbours", &match (&plan.neighbour, plan.neighbours) {
                (_, 0) => "none".to_owned(),
                (None, number) => format!("{number} of the same"),
                (Some(other), number) => format!("{number}, {}", load(other)),
            }))
            (fact("Disk of the data", &plan.disk))
            (fact("Root", &plan.load.root))
        }
    }
}

/// Each part of a plan as it stands in `run.json`.
fn parts(plan: &Plan) -> Markup {
    let parts = match serde_json::to_value(plan) {
        Ok(serde_json::Value::Object(parts)) => parts,
        _ => serde_json::Map::new(),
    };
    html! {
        dl.facts {
            @for (name, value) in &parts { (part(name, value)) }
        }
    }
}

/// Lists with commas, times and sizes with their units.
fn part(name: &str, value: &serde_json::Value) -> Markup {
    let text = |value: &serde_json::Value| match (value, value.as_u64()) {
        (_, Some(ns)) if name.ends_with("_ns") => format_duration_ns(ns),
        (_, Some(bytes)) if name.ends_with("_bytes") => format_bytes(bytes),
        (serde_json::Value::String(text), _) => text.clone(),
        _ => value.to_string(),
    };
    let shown = match value {
        serde_json::Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        one => text(one),
    };
    let name = name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ");
    fact(&name, &shown)
}

fn appliance(root: &ApplianceRoot) -> Markup {
    let packages = root.packages.iter().map(|(name, version)| format!("{name} {version}"));
    html! {
        h3 { "Appliance " (root.name) }
        dl.facts {
            (fact("Root", &format!("{}, of {}", root.digest, root.suite)))
            (fact("Image", &root.image_digest))
        }
        details {
            summary { (count(root.packages.len(), "package")) }
            ul { @for package in packages { li { (package) } } }
        }
    }
}

/// What a link adds to each way.
pub(crate) fn link(link: DesktopLink) -> String {
    let delay = (link.delay_ns > 0).then(|| format!("{} later each way", format_duration_ns(link.delay_ns)));
    let rate = link.rate.map(|rate| format!("{} Mbit/s at most", trimmed(rate as f64 / 1e6, 3)));
    let loss = (link.loss_ppm > 0)
        .then(|| format!("{} % lost and sent again", trimmed(f64::from(link.loss_ppm) / 1e4, 4)));
    delay.into_iter().chain(rate).chain(loss).collect::<Vec<_>>().join(", ")
}

fn desktops(plan: &DesktopsPlan) -> Markup {
    let numbers = match &plan.desktops {
        DesktopNumbers::Auto { most } => format!("raised until users are not content, {most} at most"),
        DesktopNumbers::Given(numbers) => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    html! {
        dl.facts {
            @if plan.are_existing() {
                (fact("Desktops", &plan.addresses.join(", ")))
            } @else {
                (fact("Desktop", &format!(
                    "{} {}, {}, {}",
                    plan.recipe,
                    if plan.vm { "in a VM each" } else { "as a session on the host each" },
                    count(plan.vcpus as usize, "processor"),
                    format_bytes(plan.memory_bytes)
                )))
                (fact("Root", &plan.root))
            }
            @if let Some(slow) = plan.link { (fact("Link", &link(slow))) }
            (fact("Numbers of desktops", &numbers))
            (fact("Day", &plan.day))
            (fact("Working time", &format_duration_ns(plan.time_ns)))
            (fact("Repetitions", &plan.repetitions.to_string()))
        }
    }
}

fn tiles(plan: &TilesPlan) -> Markup {
    let numbers = match &plan.tiles {
        TileNumbers::Auto { most } => format!("raised until a service level breaks, {most} at most"),
        TileNumbers::Given(numbers) => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let member = |one: &TileMemberPlan| {
        let load = &one.load;
        let throttle = match (load.rate, load.users, load.think_ns) {
            (Some(rate), _, _) => format!(", {rate} a second"),
            (None, Some(users), Some(think)) => {
                format!(", {} thinking {}", count(users as usize, "user"), format_duration_ns(think))
            }
            (None, Some(users), None) => format!(", {}", count(users as usize, "user")),
            (None, None, _) => String::new(),
        };
        let (processors, memory) = (count(one.vcpus as usize, "processor"), format_bytes(one.memory_bytes));
        format!("{}, {processors}, {memory}, load {}{throttle}", one.appliance, load.kind.name())
    };
    let members_run = if plan.vm {
        format!("in a VM each, reached by the network {}", plan.network)
    } else {
        "in namespaces of the host each".to_owned()
    };
    html! {
        dl.facts {
            (fact("Tile", &plan.tile))
            @for one in &plan.members { (fact(&format!("Member {}", one.name), &member(one))) }
            (fact("Members run", &members_run))
            (fact("Tiles", &numbers))
            (fact("Ramp-up and measuring time", &format!(
                "{} and {}",
                format_duration_ns(plan.ramp_up_ns),
                format_duration_ns(plan.time_ns)
            )))
            (fact("Repetitions", &plan.repetitions.to_string()))
            (fact("Energy", plan.energy.as_deref().unwrap_or("found by itself")))
        }
    }
}

/// The section's lists, with these notes, and what the machine of an environment did where that is known.
pub(crate) fn section(
    provenance: &Provenance,
    notes: &[String],
    used: &dyn Fn(&str) -> Option<MachineUse>,
) -> Markup {
    let plan = match &provenance.plan {
        Plan::NativeVsVm(plan) | Plan::Adapters(plan) => grid(plan),
        Plan::Compare(plan) => compare(plan),
        Plan::Neighbours(plan) | Plan::Deviation(plan) => colocation(plan),
        Plan::Predictions(plan) => predictions(plan),
        Plan::Oltp(plan) => oltp(plan),
        Plan::Operations(plan) => operations(plan),
        Plan::Application(plan) => application(plan),
        Plan::Desktops(plan) => desktops(plan),
        Plan::Tiles(plan) => tiles(plan),
        Plan::Network(_) | Plan::Platform(_) => parts(&provenance.plan),
    };
    let booted_elsewhere = provenance.machines.iter().any(|machine| machine.guest.is_some());
    html! {
        dl.facts {
            (fact("Started", &started(provenance)))
            (fact("virtbench", &provenance.version))
            (fact("Seed", &provenance.plan.seed().to_string()))
            dt { "Command" } dd { pre tabindex="0" { code { (shell_line(&provenance.command)) } } }
        }
        h3 { "Host" }
        (host(&provenance.host))
        @for machine in &provenance.machines {
            h3 { "Machine " (machine.environment) }
            (host(&machine.facts))
            @if let Some(used) = used(&machine.environment) { (processors(&used)) }
            @if let Some(facts) = &machine.guest {
                h4 { "Its guest" }
                (guest(facts))
            }
        }
        @match &provenance.guest {
            Some(facts) => { h3 { "Guest" } (guest(facts)) },
            None if booted_elsewhere => {},
            None => { h3 { "Guest" } p { "No guest has booted." } },
        }
        @for root in &provenance.appliances { (appliance(root)) }
        h3 { "Plan" }
        (plan)
        @if !notes.is_empty() {
            h3 { "Notes" }
            ul { @for note in notes { li { (note) } } }
        }
    }
}

pub(crate) fn fact(name: &str, value: &str) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

fn host(facts: &HostFacts) -> Markup {
    let kind = facts.hypervisor.as_ref().map_or_else(
        || "no hypervisor found below it".into(),
        |name| format!("itself a virtual machine ({name})"),
    );
    html! {
        dl.facts {
            (fact("CPU", &format!("{}, {}", facts.cpu, count(facts.processors as usize, "processor"))))
            (fact("Memory", &format_bytes(facts.memory_bytes)))
            (fact("System", &format!("{}, kernel {}", facts.distribution, facts.kernel)))
            (fact("Hypervisor", &kind))
            (fact("Disk", &disk(&facts.disk)))
        }
    }
}

/// What a machine's processors did while it was measured.
fn processors(used: &MachineUse) -> Markup {
    let percent = |value: &f64| format!("{} %", trimmed(*value, 1));
    let each: Vec<String> = used.each_percent.iter().map(percent).collect();
    html! {
        dl.facts {
            (fact("Busy", &format!("{} of one processor, on average over its points", percent(&used.cpu_percent))))
            @if !each.is_empty() { (fact("Processor by processor", &each.join(", "))) }
            (fact("Steal", &format!("{} of one processor, taken by a hypervisor below it", percent(&used.steal_percent))))
        }
    }
}

fn disk(facts: &DiskFacts) -> String {
    let known =
        |name: &str, value: &Option<String>| format!("{name} {}", value.as_deref().unwrap_or("unknown"));
    let medium = match facts.rotational {
        Some(true) => "rotating",
        Some(false) => "not rotating",
        None => "rotation unknown",
    };
    [
        format!("file system {}", facts.filesystem),
        known("device", &facts.device),
        medium.into(),
        known("scheduler", &facts.scheduler),
        known("write cache", &facts.write_cache),
    ]
    .join(", ")
}

fn guest(facts: &GuestFacts) -> Markup {
    let accelerator = &facts.accelerator;
    let processors = count(facts.vcpus as usize, "virtual processor");
    html! {
        dl.facts {
            (fact("Accelerator", &format!("{}: {}", accelerator.name.to_uppercase(), accelerator.why)))
            (fact("Adapter", &facts.adapter))
            (fact("Size", &format!("{processors}, {}", format_bytes(facts.memory_bytes))))
            (fact("Kernel", &facts.kernel))
            (fact("QEMU", &facts.qemu))
            (fact("Boot", &format!("{:.1} s", facts.boot_ns as f64 / 1e9)))
            @match facts.command_line.as_slice() {
                [domain] if domain.starts_with('<') => {
                    dt { "Domain" } dd { pre tabindex="0" { code { (domain) } } }
                },
                command => {
                    dt { "QEMU command" } dd { pre tabindex="0" { code { (shell_line(command)) } } }
                },
            }
        }
    }
}

fn grid(plan: &GridPlan) -> Markup {
    let percents = |values: &[u8]| values.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let blocks: Vec<String> = plan.blocks_bytes.iter().map(|bytes| format_bytes(*bytes)).collect();
    html! {
        dl.facts {
            (fact("Grid", &plan.grid))
            (fact("Block sizes", &blocks.join(", ")))
            (fact("% read", &percents(&plan.read_percents)))
            (fact("% random", &percents(&plan.random_percents)))
            (fact("Repetitions", &plan.repetitions.to_string()))
            (fact("Load", &format!(
                "{}, {} each",
                count(plan.workers as usize, "worker"),
                count(plan.outstanding as usize, "outstanding I/O")
            )))
            (fact("Time", &format!(
                "{} measured after {} of ramp-up, each point",
                format_duration_ns(plan.time_ns),
                format_duration_ns(plan.ramp_ns)
            )))
            (fact("Disk size", &format_bytes(plan.size_bytes)))
            (fact("Environments", &plan.environments.join(", ")))
        }
    }
}

/// The run's notes, then those of its measurements, each once.
fn notes(provenance: &Provenance, records: &[PointRecord]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let of_measurements = records
        .iter()
        .filter_map(|record| Some((&record.environment, &record.measured()?.outcome.notes)))
        .flat_map(|(environment, notes)| notes.iter().map(move |note| format!("{environment}: {note}")));
    let all = provenance.notes.iter().cloned().chain(of_measurements);
    all.filter(|note| seen.insert(note.clone())).collect()
}
