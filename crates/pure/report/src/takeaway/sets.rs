//! What is to be taken away from machines that ran together.

use std::collections::BTreeMap;

use virtbench_model::busy_host;
use virtbench_model::together::{
    DeviationAnalysis, DisturbedSet, NeighbourAnalysis, Overload, Region, Shared, far_hosts, loose_starts,
    machine_numbers,
};
use virtbench_record::{Better, ColocationPlan, HostUse, MemberStatus, Provenance, SetRecord, SetRole};

use super::Takeaway;
use super::cautions::{in_memory, is_emulated, wine};
use crate::figures::vm_name;
use crate::format::{MILLISECOND_NS, count, ratio, significant};
use crate::matrix::Matrix;

pub(crate) fn of_neighbours(
    analysis: &NeighbourAnalysis,
    provenance: &Provenance,
    records: &[SetRecord],
) -> Takeaway {
    let mut details = Vec::new();
    let lead = analysis.metrics.first();
    let together = |shared: &&Shared| analysis.sets[shared.set].vms > 1;
    let sound = |shared: &&Shared| analysis.sets[shared.set].overload.is_none();
    let shown: Vec<&Shared> = lead.iter().flat_map(|metric| &metric.sets).filter(together).collect();
    let headline = match (lead, shown.iter().copied().rfind(|shared| sound(shared))) {
        (Some(lead), Some(most)) => {
            details.extend(best_sum(analysis, lead, &shown));
            details.extend(uneven_moments(analysis, most));
            even(analysis, lead.better, &lead.name, most)
        }
        (Some(lead), None) if !shown.is_empty() => format!(
            "Nothing can be said about how VMs share {}: the host was out of processor time in every set of several \
             VMs.",
            lead.name
        ),
        (Some(lead), None) => {
            format!("Only one VM was measured ({}), so there is nobody to share with.", lead.name)
        }
        (None, _) => "Nothing has been measured.".into(),
    };
    let overloads = analysis.sets.iter().filter_map(|set| Some((set.name.as_str(), set.overload?)));
    Takeaway {
        headline,
        details,
        cautions: cautions(provenance, records, &overloads.collect::<Vec<_>>(), " VMs"),
    }
}

fn even(analysis: &NeighbourAnalysis, better: Better, name: &str, shared: &Shared) -> String {
    let vms = analysis.sets[shared.set].vms;
    let worst = shared.worst_to_best.map_or_else(String::new, |worst| {
        let what = if better == Better::Lower {
            "the least to the greatest"
        } else {
            "the worst-off VM to the best-off"
        };
        format!("{what} is {}", ratio(worst.mean))
    });
    let index =
        shared.jain.map_or_else(String::new, |jain| format!(", Jain's index {}", significant(jain.mean)));
    let sum = shared.against_one.map_or_else(String::new, |sum| {
        let interval = sum.interval.map_or_else(String::new, |span| {
            format!(" (95 % interval {} to {})", ratio(span.low), ratio(span.high))
        });
        format!("; together they reach {} times what one does alone{interval}", ratio(sum.value))
    });
    if worst.is_empty() {
        return format!(
            "{vms} VMs ran together ({name}), but never all of them with figures that can be used."
        );
    }
    format!("Of {vms} VMs at once ({name}), {worst}{index}{sum}.")
}

fn best_sum(
    analysis: &NeighbourAnalysis,
    lead: &virtbench_model::together::NeighbourMetric,
    shown: &[&Shared],
) -> Option<String> {
    let sum = |shared: &&&Shared| shared.accumulated.map_or(0.0, |sum| sum.mean);
    let usable = shown.iter().filter(|shared| analysis.sets[shared.set].overload.is_none());
    let best = usable.max_by(|a, b| sum(a).total_cmp(&sum(b))).filter(|best| best.accumulated.is_some())?;
    let set = &analysis.sets[best.set];
    if set.region == Region::Elsewhere {
        return Some(format!("The highest sum ({}) is that of {}.", lead.name, count(set.vms, "VM")));
    }
    Some(format!(
        "The highest sum ({}) is that of {} VMs, which have {} virtual processors than the host has.",
        lead.name,
        set.vms,
        if set.region == Region::Equal { "no more" } else { set.region.name() }
    ))
}

/// Even means over uneven moments ([Multi-VM 2010], section 5.3).
fn uneven_moments(analysis: &NeighbourAnalysis, shared: &Shared) -> Option<String> {
    let set = &analysis.sets[shared.set];
    let (overall, moments) = (shared.jain?.mean, set.interval_fairness?.mean);
    let worst = set.worst_interval?;
    let verdict = if overall - moments > 0.02 {
        "the means are more even than the moments they are made of"
    } else {
        "moments are about as even as the means"
    };
    Some(format!(
        "Interval by interval Jain's index is {} on average and {} at worst: {verdict}.",
        significant(moments),
        significant(worst)
    ))
}

pub(crate) fn of_deviation(
    analysis: &DeviationAnalysis,
    provenance: &Provenance,
    records: &[SetRecord],
) -> Takeaway {
    let workloads = provenance.plan.colocation().map_or(&[][..], |plan| &plan.workloads);
    let overloads: Vec<(&str, Overload)> =
        analysis.sets.iter().filter_map(|set| Some((set.name.as_str(), set.overload?))).collect();
    let cautions = cautions(provenance, records, &overloads, "");
    if let Some(matrix) = Matrix::new(workloads, analysis) {
        return Takeaway { headline: worst_pair(&matrix, analysis), details: Vec::new(), cautions };
    }
    let (mut details, mut headline) =
        (Vec::new(), "No VM was measured both alone and beside the others.".to_owned());
    if let Some(set) = analysis.sets.first() {
        if set.overload.is_some() {
            headline =
                "Nothing can be said about how far these VMs disturb each other's work: the host was out of \
                        processor time."
                    .into();
        } else if let Some(sentence) = expected(set) {
            headline = sentence;
            details.extend(most_disturbed(set));
        }
    }
    let found = analysis.saturation.iter().flatten().next();
    let seekers = provenance.plan.colocation().into_iter().flat_map(|plan| &plan.sets);
    let seekers = seekers.filter(|set| set.role == SetRole::Saturation).map(|set| set.members.len()).max();
    details.extend(found.map(|rate| {
        let who = match seekers {
            Some(count) if count > 1 => format!("{count} VMs together, unhindered, do"),
            _ => "One VM alone and unhindered does".to_owned(),
        };
        format!("{who} {} operations a second: shares are of that.", significant(rate.mean))
    }));
    Takeaway { headline, details, cautions }
}

fn expected(set: &DisturbedSet) -> Option<String> {
    let spelled = |estimate: virtbench_model::Estimate| {
        let interval = estimate.span().map_or_else(String::new, |span| {
            format!(" (95 % interval {} to {} %)", significant(span.low), significant(span.high))
        });
        format!("{} %{interval}", significant(estimate.mean))
    };
    let throughput = set.expected_throughput?;
    let response = set.expected_response.map_or_else(String::new, |response| {
        format!(", and their mean response time by {}", spelled(response))
    });
    Some(format!(
        "Beside each other, the throughput of {} VMs deviates by {} on average{response}.",
        set.vms.len(),
        spelled(throughput)
    ))
}

fn most_disturbed(set: &DisturbedSet) -> Option<String> {
    let delta =
        |vm: &virtbench_model::together::DisturbedVm| vm.response.or(vm.throughput).map(|one| one.delta.mean);
    let worst = set
        .vms
        .iter()
        .filter(|vm| delta(vm).is_some())
        .max_by(|a, b| delta(a).unwrap_or(0.0).total_cmp(&delta(b).unwrap_or(0.0)))?;
    let quantity = if worst.response.is_some() { "response time" } else { "throughput" };
    Some(format!(
        "Most disturbed is {}: its {quantity} deviates by {} %.",
        vm_name(worst),
        significant(delta(worst)?)
    ))
}

fn worst_pair(matrix: &Matrix<'_>, analysis: &DeviationAnalysis) -> String {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for set in analysis.sets.iter().filter(|set| set.overload.is_none()) {
        if let [first, second] = set.vms.as_slice() {
            for (victim, aggressor) in [(first, second), (second, first)] {
                if let Some(deviated) = victim.throughput {
                    pairs.push((deviated.delta.mean, victim.workload, aggressor.workload));
                }
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    match (pairs.first(), analysis.sets.is_empty()) {
        (Some((delta, victim, aggressor)), _) => {
            let beside = if victim == aggressor {
                "another VM that does the same"
            } else {
                matrix.workloads[*aggressor].as_str()
            };
            format!(
                "Most disturbed is {} beside {beside}: its throughput deviates by {} %.",
                matrix.workloads[*victim],
                significant(*delta)
            )
        }
        (None, false) => {
            "No pair has figures from which it can be said who disturbs whom: the host was out of \
                          processor time, or VMs have no figures."
                .into()
        }
        (None, true) => "Nothing has been measured.".into(),
    }
}

/// What keeps a careful reader from taking it for more than it is.
fn cautions(
    provenance: &Provenance,
    records: &[SetRecord],
    overloads: &[(&str, Overload)],
    noun: &str,
) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(wine(provenance));
    if is_emulated(provenance) {
        cautions.push(
            "TCG emulates the guests' processors in software: how they share is a matter of the host's scheduler and \
             the emulators, not of hardware virtualization."
                .into(),
        );
    }
    cautions.extend(in_memory(provenance));
    for kind in [Overload::Emulation, Overload::Others] {
        let names: Vec<&str> =
            overloads.iter().filter(|(_, overload)| *overload == kind).map(|(name, _)| *name).collect();
        if !names.is_empty() {
            cautions.push(format!("Not a finding ({}{noun}): {}.", names.join(", "), kind.words()));
        }
    }
    let hosts = records.iter().filter_map(|record| record.host.as_ref());
    cautions.extend(busy_host(hosts).map(|busy| busy.words()));
    if let Some(plan) = provenance.plan.colocation() {
        cautions.extend(of_homes(plan, records));
    }
    let planned = provenance.plan.colocation().map_or(0, |plan| plan.sets.len() * plan.repetitions as usize);
    if records.len() < planned {
        cautions.push(format!("The run is not complete: {} of {planned} measurements.", records.len()));
    }
    let members =
        || records.iter().flat_map(|record| record.members.iter().map(move |member| (record, member)));
    for (record, member) in members() {
        let (what, why) = match &member.status {
            MemberStatus::Failed { why } => ("failed", why),
            MemberStatus::Unavailable { why } => ("could not start", why),
            MemberStatus::Measured(_) => continue,
        };
        let line = why.lines().next().unwrap_or_default();
        cautions.push(format!(
            "{} {what} in {}, repetition {}: {line}",
            provenance.plan.colocation().map_or_else(|| member.vm.clone(), |plan| plan.label(&member.vm)),
            record.set,
            record.repetition + 1
        ));
    }
    cautions.truncate(20);
    let clocks =
        members().filter(|(_, member)| member.measured().is_some_and(|one| one.has_suspect_clock())).count();
    if clocks > 0 {
        cautions.push(format!(
            "{} had a clock more than 1 % off the host's, also when booted anew, and not used.",
            count(clocks, "measurement")
        ));
    }
    let errors: u64 = members().filter_map(|(_, member)| Some(member.measured()?.outcome.errors())).sum();
    if errors > 0 {
        cautions.push(format!("{errors} operations failed: throughput counts only what succeeded."));
    }
    if let Some(hypervisor) = &provenance.host.hypervisor {
        cautions.push(format!(
            "The host is itself a virtual machine ({hypervisor}): its processors are shared too."
        ));
    }
    cautions
}

/// Of machines that live in environments: busy hosts, starts that were not exact, clocks that jumped.
fn of_homes(plan: &ColocationPlan, records: &[SetRecord]) -> Vec<String> {
    let mut hosts: BTreeMap<&str, Vec<HostUse>> = BTreeMap::new();
    for (environment, host) in records.iter().flat_map(|record| far_hosts(plan, record)) {
        hosts.entry(environment).or_default().push(host);
    }
    let mut cautions: Vec<String> = hosts
        .into_iter()
        .filter_map(|(environment, hosts)| Some(format!("{environment}: {}", busy_host(&hosts)?.words())))
        .collect();
    let loose = loose_starts(records);
    let ms = |ns: u64| significant(ns as f64 / MILLISECOND_NS);
    if let Some(worst) = loose.iter().max_by_key(|one| one.uncertainty_ns) {
        cautions.push(format!(
            "Not begun together as exactly as is needed, in {} of {}: in {}, repetition {}, a machine may have run {} ms \
             apart from the agreed moment, and the study needs {} ms (a hundredth of the measuring time, 50 ms at most). \
             What machines do in that time they do without each other.",
            loose.len(),
            count(records.len(), "measurement"),
            worst.set,
            worst.repetition + 1,
            ms(worst.uncertainty_ns),
            ms(worst.needed_ns)
        ));
    }
    for machine in machine_numbers(plan, records) {
        let Some(jump_ns) = machine.clock_jump_ns else { continue };
        cautions.push(format!(
            "The clock of {} jumped by {} ms while it was measured: was it suspended, migrated or set?",
            plan.label(&machine.vm),
            significant(jump_ns as f64 / MILLISECOND_NS)
        ));
    }
    cautions
}
