//! Machines that ran together: their pages, the sentences to be taken away, and their tables.

use std::collections::BTreeMap;

use maud::{Markup, html};
use virtbench_model::busy_host;
use virtbench_model::together::{
    Deviated, DeviationAnalysis, DisturbedSet, DisturbedVm, NeighbourAnalysis, NeighbourMetric, Overload,
    Region, Shared, analyse_deviation, analyse_neighbours, far_hosts, loose_starts, machine_numbers,
};
use virtbench_record::{
    Better, ColocationPlan, HostUse, MachineNumbers, MemberStatus, Provenance, SetRecord, SetRole,
};

use super::page::document;
use super::tables::{Cell, header};
use super::takeaway::Takeaway;
use super::takeaway::cautions::{in_memory, is_emulated, wine};
use crate::figures::shares::Matrix;
use crate::figures::{self, vm_name};
use crate::format::{MILLISECOND_NS, count, ratio, scaled, set_marks, significant};
use crate::page::{Head, Section};
use crate::provenance;

/// What an asterisk beside figures means.
const NO_FINDING: &str = "* no finding: see what stands above before these figures are used.";

/// What a dagger beside figures means.
const LOOSE_START: &str =
    "† its machines did not begin together as exactly as the study needs: see what stands above.";

/// What the page of neighbours says, and its figures.
pub(crate) fn neighbours_head(
    facts: &Provenance,
    records: &[SetRecord],
    analysis: &NeighbourAnalysis,
) -> Head<1> {
    let title = if in_environments(facts) { "Machines side by side" } else { "VMs side by side" };
    Head {
        title: title.into(),
        place: provenance::place(facts),
        takeaway: of_neighbours(analysis, facts, records),
        sections: [Section::new(
            "figures",
            "Who gets what",
            "Nothing was measured.",
            figures::shares(analysis),
        )],
    }
}

/// What the page of deviation says, and its figures.
pub(crate) fn deviation_head(
    facts: &Provenance,
    records: &[SetRecord],
    analysis: &DeviationAnalysis,
) -> Head<1> {
    const UNPAIRED: &str = "No VM was measured both alone and beside others.";
    let in_environments = in_environments(facts);
    let title =
        if in_environments { "Machines alone and beside others" } else { "VMs alone and beside others" };
    let figures = match Matrix::new(planned_workloads(facts), analysis) {
        Some(matrix) => figures::matrix(&matrix),
        None => figures::deviations(analysis),
    };
    Head {
        title: title.into(),
        place: provenance::place(facts),
        takeaway: of_deviation(analysis, facts, records),
        sections: [Section::new("figures", "Deviation", UNPAIRED, figures)],
    }
}

/// The page of a run of neighbours.
pub(crate) fn neighbours_page(provenance: &Provenance, records: &[SetRecord]) -> String {
    let analysis = analyse_neighbours(provenance, records);
    let head = neighbours_head(provenance, records, &analysis);
    let [figures] = &head.sections;
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let content = html! {
        (head.plain_opening())
        (figures.markup())
        section aria-labelledby="tables" {
            h2 id="tables" { "Every number of VMs" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (neighbours(&analysis))
        }
        (tail(provenance, records))
    };
    document(&head.title, &provenance.version, &content)
}

/// The page of a run of deviation.
pub(crate) fn deviation(provenance: &Provenance, records: &[SetRecord]) -> String {
    let analysis = analyse_deviation(provenance, records);
    let head = deviation_head(provenance, records, &analysis);
    let [figures] = &head.sections;
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let matrix = Matrix::new(planned_workloads(provenance), &analysis);
    let content = html! {
        (head.plain_opening())
        @if let Some(matrix) = &matrix {
            section aria-labelledby="workloads" { h2 id="workloads" { "Workloads" } (workloads(matrix)) }
        }
        (figures.markup())
        section aria-labelledby="tables" {
            h2 id="tables" { "Every VM" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (deviations(&analysis))
        }
        (tail(provenance, records))
    };
    document(&head.title, &provenance.version, &content)
}

fn planned_workloads(facts: &Provenance) -> &[String] {
    facts.plan.colocation().map_or(&[][..], |plan| &plan.workloads)
}

fn in_environments(facts: &Provenance) -> bool {
    facts.plan.colocation().is_some_and(|plan| !plan.homes.is_empty())
}

fn tail(facts: &Provenance, records: &[SetRecord]) -> Markup {
    let plan = facts.plan.colocation().filter(|plan| !plan.homes.is_empty());
    html! {
        @if let Some(plan) = plan {
            section aria-labelledby="machines" {
                h2 id="machines" { "Machines" }
                p.hint {
                    "All were told to begin at one moment, each by its own clock, whose offset and drift were measured by \
                     round trips before, meanwhile and after. Processor figures are those of each machine's own host; of \
                     this host's see the tables above."
                }
                (machines(&machine_numbers(plan, records)))
            }
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (provenance::of_sets(facts, records))
        }
    }
}

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

/// A table for each figure: means, spread, sums, fairness ([Multi-VM 2010], Table 1).
pub(crate) fn neighbours(analysis: &NeighbourAnalysis) -> Markup {
    html! {
        @for metric in analysis.metrics.iter().filter(|metric| !metric.sets.is_empty()) {
            h3 { (metric.name) }
            (neighbour_table(analysis, metric))
        }
    }
}

fn neighbour_table(analysis: &NeighbourAnalysis, metric: &NeighbourMetric) -> Markup {
    let (scale, unit) = scaled(&metric.unit);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{} by number of VMs", metric.name)) {
            table {
                thead { tr {
                    (header("VMs", "", None)) (header("virtual processors", "than the host's", None))
                    (header("mean of a VM", unit, None)) (header("sd between VMs", "%", None))
                    (header("sum", unit, None)) (header("sum against one VM", "", None))
                    (header("Jain's index", "", None)) (header("worst to best", "", None))
                    (header("Jain's index over time", "mean", None)) (header("least fair interval", "", None))
                    (header("host CPU", "%", None)) (header("stolen from guests", "%", None))
                } }
                tbody { @for shared in &metric.sets { (neighbour_row(analysis, shared, scale)) } }
            }
        }
    }
}

fn neighbour_row(analysis: &NeighbourAnalysis, shared: &Shared, scale: f64) -> Markup {
    let set = &analysis.sets[shared.set];
    html! {
        tr {
            td.number { (set.vms) }
            td { (set.region.name()) (set_marks(set.overload, set.loose_start)) }
            (Cell::estimate(Some(shared.mean), 1.0 / scale).markup())
            (Cell::number(shared.stddev_percent()).markup())
            (Cell::estimate(shared.accumulated, 1.0 / scale).markup())
            (Cell::ratio(shared.against_one).markup())
            (Cell::estimate(shared.jain, 1.0).markup())
            (Cell::estimate(shared.worst_to_best, 1.0).markup())
            (Cell::estimate(set.interval_fairness, 1.0).markup())
            (Cell::number(set.worst_interval).markup())
            (Cell::number(set.host_cpu_percent).markup())
            (Cell::number(set.guest_steal_percent).markup())
        }
    }
}

/// Each VM alone and beside the others.
pub(crate) fn deviations(analysis: &DeviationAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Each VM alone and beside the others" {
            table {
                thead { tr {
                    (header("together", "", None)) (header("VM", "", None)) (header("workload", "", None))
                    (header("throughput alone", "/s", None)) (header("beside", "/s", None)) (header("deviation", "%", None))
                    (header("response alone", "ms", None)) (header("beside", "ms", None)) (header("deviation", "%", None))
                    (header("p99 alone", "ms", None)) (header("beside", "ms", None))
                } }
                tbody { @for set in &analysis.sets { @for vm in &set.vms { (deviation_row(set, vm)) } } }
            }
        }
    }
}

fn deviation_row(set: &DisturbedSet, vm: &DisturbedVm) -> Markup {
    let cells = |deviated: Option<Deviated>, unit: f64| {
        html! {
            (Cell::estimate(deviated.map(|one| one.alone), unit).markup())
            (Cell::estimate(deviated.map(|one| one.beside), unit).markup())
            (Cell::estimate(deviated.map(|one| one.delta), 1.0).markup())
        }
    };
    html! {
        tr {
            td { (set.name) (set_marks(set.overload, set.loose_start)) } td { (vm_name(vm)) } td { (vm.workload + 1) }
            (cells(vm.throughput, 1.0))
            (cells(vm.response, MILLISECOND_NS))
            @for p99 in vm.p99_ns { (Cell::number(p99.map(|ns| ns / MILLISECOND_NS)).markup()) }
        }
    }
}

/// Where each machine lives, how well it began with the others, and what its host did.
pub(crate) fn machines(machines: &[MachineNumbers]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Machines and their hosts" {
            table {
                thead { tr {
                    (header("machine", "", None)) (header("lives in", "", None)) (header("measured", "", None))
                    (header("began late by", "ms, at most", None)) (header("clock offset known to", "ms", None))
                    (header("clock drift", "ppm, at most", None)) (header("clock jumped by", "ms", None))
                    (header("its host's CPU", "%", None)) (header("stolen from it", "%", None))
                    (header("other programs there", "%", None))
                } }
                tbody { @for machine in machines { (machine_row(machine)) } }
            }
        }
    }
}

fn machine_row(machine: &MachineNumbers) -> Markup {
    let measured = match machine.without_figures {
        0 => machine.measured.to_string(),
        lost => format!("{} of {}", machine.measured, machine.measured + lost),
    };
    let ms = |ns: Option<f64>| Cell::number(ns.map(|ns| ns / MILLISECOND_NS)).markup();
    html! {
        tr {
            td { (machine.vm) } td { (machine.environment) } td.number { (measured) }
            (ms(machine.late_ns.map(|ns| ns as f64))) (ms(machine.offset_uncertainty_ns.map(|ns| ns as f64)))
            (Cell::number(machine.drift_ppm).markup())
            (ms(machine.clock_jump_ns.map(|ns| ns as f64)))
            (Cell::number(machine.cpu_percent).markup()) (Cell::number(machine.steal_percent).markup())
            (Cell::number(machine.others_percent).markup())
        }
    }
}

/// What the numbers of the matrix stand for.
pub(crate) fn workloads(matrix: &Matrix<'_>) -> Markup {
    html! { ol { @for workload in matrix.workloads { li { code { (workload) } } } } }
}
