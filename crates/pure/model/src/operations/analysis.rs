//! What a study of management operations comes to: by number of VMs and rate, and over the numbers of VMs.

use std::collections::BTreeMap;

use virtbench_record::{
    FailureKind, OperationKind, OperationNumbers, OperationsMeasured, OperationsPlan, OperationsRecord, Phase,
};

use super::growth::{Growth, growth};
use super::search::search_rate;
use super::tenants::{TenantsAnalysis, analyse_tenants};
use crate::interval::Estimate;
use crate::kind::FigureKind;

/// Operations of one kind, over the pieces of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct KindAnalysis {
    /// Those that did what they are for.
    pub done: u64,
    /// Those that did not.
    pub failed: BTreeMap<FailureKind, u64>,
    /// The median, the 90th and the 99th percentile of the latency from the intended start, in nanoseconds: each piece is a
    /// sample.
    pub percentiles_ns: [Option<Estimate>; 3],
    /// Mean time in each phase, in nanoseconds.
    pub phases_ns: BTreeMap<Phase, f64>,
}

impl KindAnalysis {
    /// The median, in nanoseconds.
    #[must_use]
    pub fn median_ns(&self) -> Option<f64> {
        self.percentiles_ns[0].map(|estimate| estimate.mean)
    }

    /// Mean of the whole latency, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.phases_ns.values().sum()
    }
}

/// A number of VMs at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAnalysis {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// Pieces.
    pub pieces: usize,
    /// Operations a minute that were done.
    pub achieved: Option<Estimate>,
    /// Operations that were to start.
    pub intended: u64,
    /// Of which could not, since no VM was in a state for them.
    pub not_issued: u64,
    /// By kind.
    pub kinds: BTreeMap<OperationKind, KindAnalysis>,
}

impl StepAnalysis {
    /// Operations that did what they are for.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.kinds.values().map(|kind| kind.done).sum()
    }

    /// Those that did not, by kind of failure.
    #[must_use]
    pub fn failed(&self) -> BTreeMap<FailureKind, u64> {
        let mut all = BTreeMap::new();
        for (failure, count) in self.kinds.values().flat_map(|kind| &kind.failed) {
            *all.entry(*failure).or_default() += count;
        }
        all
    }
}

/// All of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationsAnalysis {
    /// By number of VMs, then by rate, a closed loop first.
    pub steps: Vec<StepAnalysis>,
    /// How each operation's median grows with the number of VMs, where there were several, at the lowest rate.
    pub growth: BTreeMap<OperationKind, Growth>,
    /// What it costs the tenants, where there were any.
    pub tenants: Vec<TenantsAnalysis>,
    /// The highest rate that was sustained at the most VMs, in operations a minute, where that was searched.
    pub sustained_per_minute: Option<f64>,
}

/// What the records of a study come to.
#[must_use]
pub fn analyse_operations(plan: &OperationsPlan, records: &[OperationsRecord]) -> OperationsAnalysis {
    let mut keys: Vec<(u32, Option<f64>)> =
        records.iter().filter(|record| record.measured().is_some() && !is_quiet(record)).map(key).collect();
    keys.sort_by(|one, other| {
        one.0.cmp(&other.0).then(one.1.partial_cmp(&other.1).unwrap_or(std::cmp::Ordering::Equal))
    });
    keys.dedup();
    let steps: Vec<StepAnalysis> = keys.iter().map(|key| step(*key, records, plan.seed)).collect();
    let most = plan.vms.iter().max();
    let search = most.and_then(|vms| search_rate(plan, *vms, records));
    OperationsAnalysis {
        growth: over_vms(&steps),
        tenants: analyse_tenants(plan, records),
        sustained_per_minute: search
            .map(|(search, _)| search.result().rate * 60.0)
            .filter(|rate| *rate > 0.0),
        steps,
    }
}

/// Whether there were to be no operations, for the tenants to be alone.
fn is_quiet(record: &OperationsRecord) -> bool {
    record.per_minute == Some(0.0)
}

fn key(record: &OperationsRecord) -> (u32, Option<f64>) {
    (record.vms, record.per_minute)
}

fn step(of: (u32, Option<f64>), records: &[OperationsRecord], seed: u64) -> StepAnalysis {
    let pieces: Vec<&OperationsMeasured> =
        records.iter().filter(|record| key(record) == of).filter_map(OperationsRecord::measured).collect();
    let rates: Vec<f64> = pieces.iter().map(|piece| piece.per_minute()).collect();
    let mut kinds: BTreeMap<OperationKind, Vec<&OperationNumbers>> = BTreeMap::new();
    for (kind, numbers) in pieces.iter().flat_map(|piece| &piece.operations) {
        kinds.entry(*kind).or_default().push(numbers);
    }
    StepAnalysis {
        vms: of.0,
        per_minute: of.1,
        pieces: pieces.len(),
        achieved: FigureKind::Positive.estimate(&rates, seed),
        intended: pieces.iter().map(|piece| piece.intended).sum(),
        not_issued: pieces.iter().map(|piece| piece.not_issued).sum(),
        kinds: kinds.into_iter().map(|(kind, numbers)| (kind, one_kind(&numbers, seed))).collect(),
    }
}

fn one_kind(pieces: &[&OperationNumbers], seed: u64) -> KindAnalysis {
    let mut failed: BTreeMap<FailureKind, u64> = BTreeMap::new();
    for (failure, count) in pieces.iter().flat_map(|piece| &piece.failed) {
        *failed.entry(*failure).or_default() += count;
    }
    let estimate = |percentile: fn(&virtbench_units::LatencySummary) -> u64| {
        let samples: Vec<f64> =
            pieces.iter().filter_map(|piece| Some(percentile(piece.latency_ns.as_ref()?) as f64)).collect();
        FigureKind::Positive.estimate(&samples, seed)
    };
    let done: u64 = pieces.iter().map(|piece| piece.done).sum();
    let mut phases_ns: BTreeMap<Phase, f64> = BTreeMap::new();
    for piece in pieces {
        for (phase, lengths) in &piece.phases_ns {
            *phases_ns.entry(*phase).or_default() += lengths.mean * piece.done as f64 / done.max(1) as f64;
        }
    }
    let percentiles_ns = [estimate(|one| one.p50), estimate(|one| one.p90), estimate(|one| one.p99)];
    KindAnalysis { done, failed, percentiles_ns, phases_ns }
}

/// Of each operation, at the lowest rate that there was at every number of VMs.
fn over_vms(steps: &[StepAnalysis]) -> BTreeMap<OperationKind, Growth> {
    let mut lowest: BTreeMap<u32, &StepAnalysis> = BTreeMap::new();
    for step in steps {
        lowest.entry(step.vms).or_insert(step);
    }
    let of = |kind: OperationKind| {
        let points: Vec<(f64, f64)> = lowest
            .values()
            .filter_map(|step| Some((f64::from(step.vms), step.kinds.get(&kind)?.median_ns()?)))
            .collect();
        growth(&points)
    };
    OperationKind::ALL.into_iter().filter_map(|kind| Some((kind, of(kind)?))).collect()
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
