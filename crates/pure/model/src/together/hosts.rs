//! The hosts of machines that live in environments.

use virtbench_record::{
    ColocationPlan, Home, HostUse, MachineNumbers, MemberMeasured, MemberRecord, SetRecord,
};

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

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
