//! Ways of sharing beside each other: what each does to machines that run alone and beside others.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{
    ColocationPlan, JobOutcome, MemberRecord, Ranged, SetRecord, SetRole, Simulated, SystemFate,
    SystemNumbers, SystemRow, SystemVmNumbers,
};
use virtbench_units::{LatencySummary, rounded};

use crate::deviation::{OverExperiments, deviation};

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

/// A figure by repetition.
type ByRepetition = BTreeMap<u32, f64>;

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
