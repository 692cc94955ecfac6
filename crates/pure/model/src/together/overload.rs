//! Whether a host was so busy, or its machines began so far apart, that what was measured says something else than it seems to.

use std::collections::BTreeMap;

use virtbench_record::{
    ColocationPlan, Home, HostUse, LooseStart, MachineNumbers, MemberMeasured, MemberRecord, Provenance,
    SetRecord, SetStart, unattributed_percent,
};

use crate::host_load::OTHERS_SHARE;

/// Share of all processors' time from which on a host is called out of CPU.
const OUT_OF_CPU: f64 = 0.95;

/// Why figures are no finding about the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// All processors were busy emulating the guests: seen is how emulators share processors.
    Emulation,
    /// All processors were busy, in part with what belongs neither to the guests nor to virtbench.
    Others,
}

impl Overload {
    /// In words, of a set of which it is said.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Emulation => {
                "the host had no processor time left beside emulating its guests, so that the figures show how \
                 emulators share processors and not how VMs share what the workload is about"
            }
            Self::Others => {
                "the host's processors were all busy, in part with something else than these VMs, so that the \
                 figures show that as well"
            }
        }
    }
}

/// Judges the records of one set, by their mean: this host, and those of machines that live elsewhere.
#[must_use]
pub fn overload(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    of_this_host(provenance, records).or_else(|| of_far_hosts(provenance, records))
}

/// On another host only other programs falsify figures: what virtbench does there is what was asked for.
fn of_far_hosts(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    let plan = provenance.plan.colocation()?;
    let mut hosts: BTreeMap<&str, Vec<HostUse>> = BTreeMap::new();
    for (environment, host) in records.iter().flat_map(|record| far_hosts(plan, record)) {
        hosts.entry(environment).or_default().push(host);
    }
    let is_overloaded = |hosts: &Vec<HostUse>| {
        let all: f64 = hosts.iter().map(|host| 100.0 * f64::from(host.processors.max(1))).sum();
        let sum = |of: fn(&HostUse) -> f64| hosts.iter().map(of).sum::<f64>();
        sum(|host| host.cpu_percent) >= OUT_OF_CPU * all
            && sum(|host| host.others_percent.unwrap_or(0.0)) >= OTHERS_SHARE * all
    };
    hosts.values().any(is_overloaded).then_some(Overload::Others)
}

fn of_this_host(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    let hosts: Vec<_> = records.iter().filter_map(|record| Some((record, record.host.as_ref()?))).collect();
    if hosts.is_empty() {
        return None;
    }
    let all = 100.0 * f64::from(provenance.host.processors.max(1)) * hosts.len() as f64;
    let busy: f64 = hosts.iter().map(|(_, host)| host.cpu_percent).sum();
    if busy < OUT_OF_CPU * all {
        return None;
    }
    // Records from before other programs were looked at tell no more than what no process accounts for.
    let of_others = |(record, host): &(&&SetRecord, &HostUse)| {
        host.others_percent.unwrap_or_else(|| unattributed_percent(host, &record.processes))
    };
    if hosts.iter().map(of_others).sum::<f64>() >= OTHERS_SHARE * all {
        return Some(Overload::Others);
    }
    is_emulated(provenance).then_some(Overload::Emulation)
}

/// Whether the guests' processors are emulated in software.
pub(super) fn is_emulated(provenance: &Provenance) -> bool {
    provenance.guest.as_ref().is_some_and(|guest| guest.accelerator.name.eq_ignore_ascii_case("tcg"))
}

/// What the processors of each environment's machine did while a set was measured, where that is not this host, by the
/// environment's name. What one agent takes for other programs, and are the agents of other machines of the set there, is left
/// out.
#[must_use]
pub fn far_hosts<'p>(plan: &'p ColocationPlan, record: &SetRecord) -> Vec<(&'p str, HostUse)> {
    let mut hosts: Vec<(&str, HostUse)> = Vec::new();
    for member in &record.members {
        let found = plan.home(&member.vm).zip(member.measured().and_then(|measured| measured.host.clone()));
        let Some((home, mut host)) =
            found.filter(|(home, _)| hosts.iter().all(|one| one.0 != home.environment))
        else {
            continue;
        };
        let beside =
            record.members.iter().filter(|other| other.vm != member.vm && lives_in(plan, other, home));
        let theirs: f64 = beside.filter_map(MemberRecord::measured).map(own_cpu_percent).sum();
        host.others_percent = host.others_percent.map(|others| (others - theirs).max(0.0));
        hosts.push((&home.environment, host));
    }
    hosts
}

fn lives_in(plan: &ColocationPlan, member: &MemberRecord, home: &Home) -> bool {
    plan.home(&member.vm).is_some_and(|other| other.environment == home.environment)
}

/// What the agent itself used, in percent of one processor.
fn own_cpu_percent(measured: &MemberMeasured) -> f64 {
    let [user_ns, system_ns] = measured.outcome.own_cpu_ns();
    let elapsed_ns = measured.outcome.elapsed_ns().max(1) as f64;
    100.0 * (user_ns.saturating_add(system_ns)) as f64 / elapsed_ns
}

/// Each machine of a run of environments, over its measurements.
#[must_use]
pub fn machine_numbers(plan: &ColocationPlan, records: &[SetRecord]) -> Vec<MachineNumbers> {
    plan.homes.iter().map(|home| numbers(plan, home, records)).collect()
}

fn numbers(plan: &ColocationPlan, home: &Home, records: &[SetRecord]) -> MachineNumbers {
    let members = || records.iter().flat_map(|record| &record.members).filter(|member| member.vm == home.vm);
    let measured = || members().filter_map(MemberRecord::measured);
    let starts = || measured().filter_map(|measured| measured.start);
    let drifts = measured().filter_map(|measured| Some(measured.clock.as_ref()?.drift_ppm));
    let is_of_it = |record: &&SetRecord| record.members.iter().any(|member| member.vm == home.vm);
    let hosts: Vec<HostUse> = records
        .iter()
        .filter(is_of_it)
        .flat_map(|record| far_hosts(plan, record))
        .filter(|(environment, _)| *environment == home.environment)
        .map(|(_, host)| host)
        .collect();
    let mean = |of: &dyn Fn(&HostUse) -> Option<f64>| {
        let values: Vec<f64> = hosts.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let usable = members().filter(|member| member.usable().is_some()).count();
    MachineNumbers {
        vm: home.vm.clone(),
        environment: home.environment.clone(),
        uri: home.uri.clone(),
        measured: usable,
        without_figures: members().count() - usable,
        late_ns: starts().map(|start| start.late_ns).max_by_key(|late| late.unsigned_abs()),
        offset_uncertainty_ns: starts().map(|start| start.offset_uncertainty_ns).max(),
        drift_ppm: drifts.max_by(|one, other| one.abs().total_cmp(&other.abs())),
        clock_jump_ns: starts()
            .filter_map(|start| start.clock_jump_ns)
            .max_by_key(|jump| jump.unsigned_abs()),
        processors: hosts.last().map(|host| host.processors),
        cpu_percent: mean(&|host| Some(host.cpu_percent)),
        steal_percent: mean(&|host| Some(host.steal_percent)),
        others_percent: mean(&|host| host.others_percent),
    }
}

/// Measurements that began less exactly than is needed, in the records' order.
#[must_use]
pub fn loose_starts(records: &[SetRecord]) -> Vec<LooseStart> {
    let loose = |record: &SetRecord| {
        let SetStart { uncertainty_ns, needed_ns, is_enough } = record.start?;
        let (set, repetition) = (record.set.clone(), record.repetition);
        (!is_enough).then_some(LooseStart { set, repetition, uncertainty_ns, needed_ns })
    };
    records.iter().filter_map(loose).collect()
}

/// Of the measurements of one set the one that began least exactly, if one is marked.
#[must_use]
pub fn loose_start(records: &[&SetRecord]) -> Option<SetStart> {
    let loose = records.iter().filter_map(|record| record.start).filter(|start| !start.is_enough);
    loose.max_by_key(|start| start.uncertainty_ns)
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
