//! What a study of management operations comes to: by number of VMs and rate, and over the numbers of VMs.

use std::collections::BTreeMap;

use virtbench_record::{
    CloneKind, FailureKind, OperationKind, OperationNumbers, OperationsMeasured, OperationsPlan,
    OperationsRecord, SteadyWindow,
};
use virtbench_units::LatencySummary;

use super::clones::{CloneAnalysis, analyse_clones};
use super::growth::{Growth, growth};
use super::kinds::{KindAnalysis, one_kind};
use super::management::{ManagementAnalysis, analyse_management};
use super::search::{self, search_rate};
use super::tenants::{TenantsAnalysis, analyse_tenants};
use crate::interval::Estimate;
use crate::kind::FigureKind;
use crate::saturation::SaturationSearch;

/// A number of VMs at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAnalysis {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// Pieces.
    pub pieces: usize,
    /// Operations a minute that were done, in the steady state: the score of [Platform 2014].
    pub achieved: Option<Estimate>,
    /// Whether the platform kept up; nothing where the pieces do not tell, as those that are too short and those of earlier versions.
    pub kept_up: Option<bool>,
    /// Whether operations take longer than half of a piece, so that it has no steady state.
    pub is_short: bool,
    /// The mean and the 95th percentile of all operations' latency, in nanoseconds: each piece is a sample.
    pub latency_ns: [Option<Estimate>; 2],
    /// Operations that were to start.
    pub intended: u64,
    /// Those a minute of the pieces' length: where arrivals are random and pieces short, not the rate that was asked for.
    pub arrived_per_minute: f64,
    /// Of which could not, since no VM was in a state for them.
    pub not_issued: u64,
    /// By kind.
    pub kinds: BTreeMap<OperationKind, KindAnalysis>,
    /// Ways to make clones' disks, where there were several.
    pub clones: Vec<CloneAnalysis>,
    /// What the platform's own processes used.
    pub management: Vec<ManagementAnalysis>,
    /// Why that is not known of some pieces.
    pub management_unavailable: Vec<String>,
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
    /// Where a search has found no rate that is sustained: in operations a minute, the rate below which its pieces are too short to tell.
    pub untold_below_per_minute: Option<f64>,
    /// Why pieces are no result, in their order.
    pub incomplete: Vec<String>,
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
    let steps: Vec<StepAnalysis> = keys.iter().map(|key| step(*key, records, plan)).collect();
    let most = plan.vms.iter().max();
    let search = most.and_then(|vms| search_rate(plan, *vms, records)).map(|(search, _)| search);
    let found = search.as_ref().map(SaturationSearch::result);
    let is_over = search.as_ref().is_some_and(|search| search.next_probe().is_none());
    OperationsAnalysis {
        growth: over_vms(&steps, records),
        tenants: analyse_tenants(plan, records),
        sustained_per_minute: found.as_ref().map(|found| found.rate * 60.0).filter(|rate| *rate > 0.0),
        untold_below_per_minute: found
            .filter(|found| is_over && found.rate <= 0.0)
            .map(|_| search::least_per_second(plan.piece_ns) * 60.0),
        incomplete: without_result(records).map(|(record, why)| of_piece(record, why)).collect(),
        steps,
    }
}

/// Pieces that are no result and were not measured again, with the reason.
pub fn without_result(records: &[OperationsRecord]) -> impl Iterator<Item = (&OperationsRecord, &str)> {
    records.iter().enumerate().filter_map(|(index, record)| {
        let (why, _) = record.incomplete()?;
        let again =
            |later: &OperationsRecord| (later.key.vms, later.key.piece) == (record.key.vms, record.key.piece);
        (!records[index + 1..].iter().any(again)).then_some((record, why))
    })
}

fn of_piece(record: &OperationsRecord, why: &str) -> String {
    format!("piece {} at {} VMs: {why}", record.key.piece + 1, record.key.vms)
}

/// Whether there were to be no operations, for the tenants to be alone.
fn is_quiet(record: &OperationsRecord) -> bool {
    record.key.per_minute == Some(0.0)
}

fn key(record: &OperationsRecord) -> (u32, Option<f64>) {
    (record.key.vms, record.key.per_minute)
}

fn step(of: (u32, Option<f64>), records: &[OperationsRecord], plan: &OperationsPlan) -> StepAnalysis {
    let of_step = records.iter().filter(|record| key(record) == of);
    let numbered: Vec<(u32, &OperationsMeasured)> =
        of_step.filter_map(|record| Some((record.key.piece, record.measured()?))).collect();
    let pieces: Vec<&OperationsMeasured> = numbered.iter().map(|(_, piece)| *piece).collect();
    let (ways, seed): (&[CloneKind], u64) = (&plan.clones, plan.seed);
    let rates: Vec<f64> = pieces.iter().map(|piece| piece.per_minute()).collect();
    let mut kinds: BTreeMap<OperationKind, Vec<&OperationNumbers>> = BTreeMap::new();
    for (kind, numbers) in pieces.iter().flat_map(|piece| &piece.operations) {
        kinds.entry(*kind).or_default().push(numbers);
    }
    let intended: u64 = pieces.iter().map(|piece| piece.intended).sum();
    let overall = |figure: fn(&LatencySummary) -> f64| {
        let samples: Vec<f64> = pieces.iter().filter_map(|piece| Some(figure(&piece.latency_ns?))).collect();
        FigureKind::Positive.estimate(&samples, seed)
    };
    let length_ns = pieces.len() as f64 * plan.piece_ns as f64;
    let (management, management_unavailable) = analyse_management(&pieces);
    StepAnalysis {
        vms: of.0,
        per_minute: of.1,
        pieces: pieces.len(),
        achieved: FigureKind::Positive.estimate(&rates, seed),
        kept_up: kept_up(&pieces),
        is_short: steady(&pieces).any(|window| window.is_short),
        latency_ns: [overall(|one| one.mean), overall(|one| one.p95 as f64)],
        intended,
        arrived_per_minute: if length_ns > 0.0 { intended as f64 * 60e9 / length_ns } else { 0.0 },
        not_issued: pieces.iter().map(|piece| piece.not_issued).sum(),
        kinds: kinds
            .into_iter()
            .map(|(kind, numbers)| {
                let rates: Vec<f64> =
                    steady(&pieces).filter_map(|one| one.per_minute.get(&kind).copied()).collect();
                let throughput = FigureKind::Positive.estimate(&rates, seed);
                (kind, KindAnalysis { throughput, ..one_kind(&numbers, seed) })
            })
            .collect(),
        clones: analyse_clones(ways, &numbered, seed),
        management,
        management_unavailable,
    }
}

fn steady<'a>(pieces: &'a [&OperationsMeasured]) -> impl Iterator<Item = &'a SteadyWindow> {
    pieces.iter().filter_map(|piece| piece.steady.as_ref())
}

/// Whether most pieces were kept up with.
fn kept_up(pieces: &[&OperationsMeasured]) -> Option<bool> {
    let told: Vec<bool> = pieces.iter().filter_map(|piece| search::kept_up(piece)).collect();
    (!told.is_empty()).then(|| 2 * told.iter().filter(|kept| **kept).count() >= told.len())
}

/// Of each operation, at the lowest rate that there was at every number of VMs; each piece is a point.
fn over_vms(steps: &[StepAnalysis], records: &[OperationsRecord]) -> BTreeMap<OperationKind, Growth> {
    let mut lowest: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    for step in steps {
        lowest.entry(step.vms).or_insert(step.per_minute);
    }
    let is_lowest = |record: &&OperationsRecord| lowest.get(&record.key.vms) == Some(&record.key.per_minute);
    let of = |kind: OperationKind| {
        let points: Vec<(f64, f64)> = records
            .iter()
            .filter(is_lowest)
            .filter_map(|record| {
                let latency = record.measured()?.operations.get(&kind)?.latency_ns?;
                Some((f64::from(record.key.vms), latency.p50 as f64))
            })
            .collect();
        growth(&points)
    };
    OperationKind::ALL.into_iter().filter_map(|kind| Some((kind, of(kind)?))).collect()
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
