//! How far VMs disturb each other: the deviation of [VirtualFence 2013], section 4.1, also under several ways of sharing.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{
    ColocationPlan, JobOutcome, MemberRecord, Provenance, Ranged, SetPlan, SetRecord, SetRole, SetStart,
    Simulated, SystemFate, SystemNumbers, SystemRow, SystemVmNumbers,
};
use virtbench_units::{LatencySummary, rounded};

use super::overload::{Overload, loose_start, overload};
use crate::interval::{Estimate, FigureKind, median};
use crate::ratio::{OverExperiments, deviation, deviation_percent, over_experiments};

/// One figure of one VM, alone and beside others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviated {
    /// Alone.
    pub alone: Estimate,
    /// Beside others.
    pub beside: Estimate,
    /// The deviation, in percent: each repetition's against the same repetition alone.
    pub delta: Estimate,
    /// The least and the greatest repetition's, in percent ([VirtualFence 2013]'s range markers).
    pub range: (f64, f64),
}

/// One VM of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct DisturbedVm {
    /// Its name.
    pub vm: String,
    /// Index of its workload.
    pub workload: usize,
    /// Its share of saturation, in percent.
    pub share_percent: Option<f64>,
    /// Of throughput.
    pub throughput: Option<Deviated>,
    /// Of mean response time.
    pub response: Option<Deviated>,
    /// 99th percentile of the response times alone and beside others, in nanoseconds: the median of the
    /// repetitions'.
    pub p99_ns: [Option<f64>; 2],
}

/// VMs that ran together.
#[derive(Debug, Clone, PartialEq)]
pub struct DisturbedSet {
    /// Its name.
    pub name: String,
    /// VM by VM.
    pub vms: Vec<DisturbedVm>,
    /// E\[delta\] of throughput over the VMs, repetition by repetition.
    pub expected_throughput: Option<Estimate>,
    /// E\[delta\] of response time.
    pub expected_response: Option<Estimate>,
    /// Why its figures are no finding about the workloads, if that is so.
    pub overload: Option<Overload>,
    /// The measurement that began least exactly, if one did less exactly than is needed.
    pub loose_start: Option<SetStart>,
    /// Machines that failed, could not start or cannot be used, over all repetitions.
    pub without_figures: usize,
}

/// Everything that follows from a run of deviation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviationAnalysis {
    /// Saturation of each workload, in its own unit a second, where it was looked for.
    pub saturation: Vec<Option<Estimate>>,
    /// Each set that ran together.
    pub sets: Vec<DisturbedSet>,
}

type OutcomeMetric = fn(&JobOutcome) -> Option<f64>;

type ByRepetition = BTreeMap<u32, f64>;

/// What the records of a run of deviation come to.
#[must_use]
pub fn analyse_deviation(provenance: &Provenance, records: &[SetRecord]) -> DeviationAnalysis {
    let Some(plan) = provenance.plan.colocation() else { return DeviationAnalysis::default() };
    let seed = provenance.plan.seed();
    let saturation = (0..plan.workloads.len())
        .map(|workload| {
            let set = plan.sets.iter().find(|set| {
                set.role == SetRole::Saturation
                    && set.members.iter().any(|member| member.workload == workload)
            })?;
            let rates = summed(records, &set.name, set.members.len());
            FigureKind::Positive.estimate(&rates.into_values().collect::<Vec<f64>>(), seed)
        })
        .collect();
    let together = plan.sets.iter().filter(|set| set.role == SetRole::Together);
    let sets = together
        .map(|set| {
            let figure = |position: usize, figure: OutcomeMetric| {
                let alone = alone_of(plan, records, &set.members[position], figure);
                (alone, by_repetition(records, &set.name, position, figure))
            };
            let all = |of: OutcomeMetric| -> Vec<(ByRepetition, ByRepetition)> {
                (0..set.members.len()).map(|position| figure(position, of)).collect()
            };
            let (throughputs, responses) = (all(JobOutcome::throughput), all(JobOutcome::response_ns));
            // Those that were to run alone as well.
            let lone = |both: &[(ByRepetition, ByRepetition)]| -> Vec<(ByRepetition, ByRepetition)> {
                let members = set.members.iter().zip(both);
                members
                    .filter(|(member, _)| alone_set(plan, member).is_some())
                    .map(|(_, both)| both.clone())
                    .collect()
            };
            let vms = set.members.iter().enumerate().map(|(position, member)| DisturbedVm {
                vm: member.vm.clone(),
                workload: member.workload,
                share_percent: member.share_percent,
                throughput: deviated(&throughputs[position], seed),
                response: deviated(&responses[position], seed),
                p99_ns: p99_ns(figure(position, JobOutcome::response_p99_ns)),
            });
            let of_set: Vec<&SetRecord> = records.iter().filter(|record| record.set == set.name).collect();
            DisturbedSet {
                name: set.name.clone(),
                vms: vms.collect(),
                expected_throughput: expected(&lone(&throughputs), seed),
                expected_response: expected(&lone(&responses), seed),
                overload: overload(provenance, &of_set),
                loose_start: loose_start(&of_set),
                without_figures: of_set
                    .iter()
                    .flat_map(|record| &record.members)
                    .filter(|member| member.usable().is_none())
                    .count(),
            }
        })
        .collect();
    DeviationAnalysis { saturation, sets }
}

fn by_repetition(records: &[SetRecord], set: &str, position: usize, figure: OutcomeMetric) -> ByRepetition {
    let of_set = records.iter().filter(|record| record.set == set);
    of_set
        .filter_map(|record| {
            let value = figure(&record.members.get(position)?.usable()?.outcome)?;
            Some((record.repetition, value))
        })
        .collect()
}

/// What all members of a set did a second, in the repetitions in which each has a figure.
fn summed(records: &[SetRecord], set: &str, members: usize) -> ByRepetition {
    let all: Vec<ByRepetition> =
        (0..members).map(|position| by_repetition(records, set, position, JobOutcome::throughput)).collect();
    let Some((first, others)) = all.split_first() else { return ByRepetition::new() };
    let sum = |(repetition, rate): (&u32, &f64)| {
        let rest: Option<f64> = others.iter().map(|other| other.get(repetition).copied()).sum();
        Some((*repetition, rate + rest?))
    };
    first.iter().filter_map(sum).collect()
}

/// A member's figures where it ran alone: the same VM, workload and share.
fn alone_of(
    plan: &ColocationPlan,
    records: &[SetRecord],
    member: &virtbench_record::MemberPlan,
    figure: OutcomeMetric,
) -> ByRepetition {
    alone_set(plan, member).map(|set| by_repetition(records, &set.name, 0, figure)).unwrap_or_default()
}

/// The set in which a member runs alone.
fn alone_set<'a>(plan: &'a ColocationPlan, member: &virtbench_record::MemberPlan) -> Option<&'a SetPlan> {
    plan.sets.iter().find(|set| set.role == SetRole::Alone && set.members.first() == Some(member))
}

fn deltas((alone, beside): &(ByRepetition, ByRepetition)) -> ByRepetition {
    let pairs =
        alone.iter().filter_map(|(repetition, alone)| Some((*repetition, *alone, *beside.get(repetition)?)));
    pairs
        .filter_map(|(repetition, alone, beside)| Some((repetition, deviation_percent(alone, beside)?)))
        .collect()
}

fn deviated(both: &(ByRepetition, ByRepetition), seed: u64) -> Option<Deviated> {
    let estimate = |values: &ByRepetition| {
        FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<f64>>(), seed)
    };
    let deltas = deltas(both);
    let OverExperiments { estimate: delta, range } = over_experiments(deltas.values().copied(), seed)?;
    Some(Deviated {
        alone: estimate(&both.0)?,
        beside: estimate(&both.1)?,
        delta,
        range: (range.low, range.high),
    })
}

fn p99_ns((alone, beside): (ByRepetition, ByRepetition)) -> [Option<f64>; 2] {
    [alone, beside].map(|values| median(values.into_values()))
}

/// `E[delta]`, from repetitions in which every VM has a deviation.
fn expected(members: &[(ByRepetition, ByRepetition)], seed: u64) -> Option<Estimate> {
    let all: Vec<ByRepetition> = members.iter().map(deltas).collect();
    let means: Vec<f64> = all
        .first()?
        .keys()
        .filter_map(|repetition| {
            let values: Option<Vec<f64>> = all.iter().map(|one| one.get(repetition).copied()).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        })
        .collect();
    FigureKind::Positive.estimate(&means, seed)
}

impl From<OverExperiments> for Ranged {
    fn from(over: OverExperiments) -> Self {
        let span = over.estimate.span();
        Self {
            mean: over.estimate.mean,
            low: span.map(|span| span.low),
            high: span.map(|span| span.high),
            least: Some(over.range.low),
            greatest: Some(over.range.high),
        }
    }
}

/// Every machine of every set but those that look for saturation, as it was measured under `system` and simulated.
#[must_use]
pub fn system_rows(
    system: &str,
    plan: &ColocationPlan,
    records: &[SetRecord],
    simulated: &[Simulated],
) -> Vec<SystemRow> {
    let mut rows = Vec::new();
    for record in records {
        let Some(set) = plan.set(&record.set).filter(|set| set.role != SetRole::Saturation) else { continue };
        for (planned, member) in set.members.iter().zip(&record.members) {
            let simulated = simulated.iter().find(|one| one.set == set.name && one.vm == planned.vm);
            rows.push(SystemRow {
                share_percent: planned.share_percent,
                beside_others: set.role == SetRole::Together,
                repetition: record.repetition,
                ..row(system, member, simulated)
            });
        }
    }
    rows
}

fn row(system: &str, member: &MemberRecord, simulated: Option<&Simulated>) -> SystemRow {
    let outcome = member.usable().map(|measured| &measured.outcome);
    let measured = outcome.and_then(|outcome| match outcome {
        JobOutcome::Load(load) => load.total.latency_ns,
        JobOutcome::Workload(workload) => workload.latency_ns,
    });
    let ms = |summary: Option<LatencySummary>, value_ns: fn(&LatencySummary) -> f64| {
        summary.map(|summary| rounded(value_ns(&summary) / 1e6))
    };
    let modelled = simulated.and_then(|one| one.response_ns);
    SystemRow {
        system: system.to_owned(),
        vm: member.vm.clone(),
        share_percent: None,
        beside_others: false,
        repetition: 0,
        per_second: outcome.and_then(JobOutcome::throughput).map(rounded),
        mean_ms: ms(measured, |summary| summary.mean),
        p50_ms: ms(measured, |summary| summary.p50 as f64),
        p90_ms: ms(measured, |summary| summary.p90 as f64),
        p99_ms: ms(measured, |summary| summary.p99 as f64),
        simulated_per_second: simulated.map(|one| rounded(one.per_second)),
        simulated_mean_ms: ms(modelled, |summary| summary.mean),
        simulated_p50_ms: ms(modelled, |summary| summary.p50 as f64),
        simulated_p90_ms: ms(modelled, |summary| summary.p90 as f64),
        simulated_p99_ms: ms(modelled, |summary| summary.p99 as f64),
    }
}

/// A system's machines over their repetitions.
#[must_use]
pub fn compared_system(
    system: String,
    summary: String,
    fate: SystemFate,
    rows: &[SystemRow],
) -> SystemNumbers {
    let vms: BTreeSet<&str> = rows.iter().map(|row| row.vm.as_str()).collect();
    SystemNumbers { system, summary, fate, vms: vms.into_iter().map(|vm| numbers_of(vm, rows)).collect() }
}

/// The figures of one VM.
fn numbers_of(vm: &str, rows: &[SystemRow]) -> SystemVmNumbers {
    let of = |figure: fn(&SystemRow) -> Option<f64>| -> [ByRepetition; 2] {
        [false, true].map(|beside| {
            let own = rows.iter().filter(|row| row.vm == vm && row.beside_others == beside);
            own.filter_map(|row| Some((row.repetition, figure(row)?))).collect()
        })
    };
    let mean = |values: &ByRepetition| {
        (!values.is_empty()).then(|| values.values().sum::<f64>() / values.len() as f64)
    };
    let both = |figure: fn(&SystemRow) -> Option<f64>| of(figure).each_ref().map(mean);
    let differs = |figure: fn(&SystemRow) -> Option<f64>| {
        let [alone, beside] = of(figure);
        let pairs = alone.iter().filter_map(|(repetition, alone)| Some((*alone, *beside.get(repetition)?)));
        deviation(pairs, 0).map(Ranged::from)
    };
    SystemVmNumbers {
        vm: vm.to_owned(),
        share_percent: rows.iter().find(|row| row.vm == vm).and_then(|row| row.share_percent),
        per_second: both(|row| row.per_second),
        throughput_deviation: differs(|row| row.per_second),
        mean_ms: both(|row| row.mean_ms),
        response_deviation: differs(|row| row.mean_ms),
        p99_ms: both(|row| row.p99_ms),
        simulated_per_second: both(|row| row.simulated_per_second),
        simulated_throughput_deviation: differs(|row| row.simulated_per_second),
        simulated_mean_ms: both(|row| row.simulated_mean_ms),
        simulated_response_deviation: differs(|row| row.simulated_mean_ms),
        simulated_p99_ms: both(|row| row.simulated_p99_ms),
    }
}

#[cfg(test)]
#[path = "deviation_tests.rs"]
mod deviation_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(vm: &str, repetition: u32, beside_others: bool, mean_ms: f64) -> SystemRow {
        SystemRow {
            system: "none".into(),
            vm: vm.into(),
            share_percent: Some(8.0),
            beside_others,
            repetition,
            per_second: Some(10.0),
            mean_ms: Some(mean_ms),
            p99_ms: Some(2.0 * mean_ms),
            simulated_per_second: Some(10.0),
            ..SystemRow::default()
        }
    }

    /// Slower by half in one repetition, faster by half in the other: that is no deviation of nothing.
    #[test]
    fn every_machine_deviates_by_the_mean_of_its_repetitions() {
        let rows = [
            row("vm1", 0, false, 10.0),
            row("vm1", 0, true, 15.0),
            row("vm1", 1, false, 20.0),
            row("vm1", 1, true, 10.0),
            row("vm2", 1, false, 40.0),
            row("vm2", 0, true, 80.0),
            row("vm2", 1, true, 50.0),
        ];
        let compared = compared_system("none".into(), String::new(), SystemFate::Measured, &rows);
        let [one, two] = compared.vms.as_slice() else { panic!("{compared:?}") };
        let differs = one.response_deviation.unwrap();
        assert_eq!((differs.mean, differs.least, differs.greatest), (50.0, Some(50.0), Some(50.0)));
        let differs = two.response_deviation.unwrap();
        assert_eq!((differs.mean, differs.low), (25.0, None), "of the one repetition with both");
        assert_eq!(one.throughput_deviation.unwrap().mean, 0.0);
    }
}
