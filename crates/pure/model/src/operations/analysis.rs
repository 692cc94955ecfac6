//! What a study of management operations comes to: by number of VMs and rate, over the numbers of VMs, and
//! the highest rate that a platform sustains.

use std::collections::BTreeMap;

use virtbench_record::{
    CloneKind, CloneNumbers, Conclusion, DensityNumbers, FailureKind, LatencyNumbers, ManagementNumbers,
    OperationKind, OperationNumbers, OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord,
    OperationsStepNumbers, OperationsSummary, SteadyWindow, TenantNumbers,
};
use virtbench_units::LatencySummary;

use super::kinds::{
    CloneAnalysis, KindAnalysis, ManagementAnalysis, TenantsAnalysis, analyse_clones, analyse_management,
    analyse_tenants, one_kind,
};
use super::{Growth, growth};
use crate::interval::{Estimate, FigureKind};
use crate::saturation::{Probe, RunResult, SaturationRules, SaturationSearch};
use crate::slo::{LatencyMetric, Slo};

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
            .map(|_| least_per_second(plan.piece_ns) * 60.0),
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
        kept_up: mostly_kept_up(&pieces),
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
fn mostly_kept_up(pieces: &[&OperationsMeasured]) -> Option<bool> {
    let told: Vec<bool> = pieces.iter().filter_map(|piece| self::kept_up(piece)).collect();
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

/// Of operations that arrive at random, so many are due in a piece on average for it to tell whether they are kept up with: fewer than one
/// in a hundred pieces then holds none.
const LEAST_DUE: f64 = 5.0;

/// The search as it stands at a number of VMs, and how many pieces it has seen; nothing where no rate is searched.
#[must_use]
pub fn search_rate(
    plan: &OperationsPlan,
    vms: u32,
    records: &[OperationsRecord],
) -> Option<(SaturationSearch, u32)> {
    let OperationsLoad::Max { limit_ns } = plan.load else { return None };
    let rules = rules(limit_ns, plan.piece_ns);
    let mut search = SaturationSearch::new(rules);
    let mut pieces = 0;
    for measured in
        records.iter().filter(|record| record.key.vms == vms).filter_map(OperationsRecord::measured)
    {
        let offered = match search.next_probe() {
            Some(Probe::Offered { per_second }) => Some(per_second),
            Some(Probe::Closed) | None => None,
        };
        search.observe(result(measured, offered));
        pieces += 1;
    }
    Some((search, pieces))
}

fn rules(limit_ns: u64, piece_ns: u64) -> SaturationRules {
    SaturationRules {
        slo: Some(Slo { figure: LatencyMetric::P95, limit_ns }),
        // Operations are few: what a minute holds varies by a tenth.
        slack: 0.05,
        // The backlog tells whether a rate is kept up with, however many arrived.
        poisson: false,
        resolution: 0.1,
        points: 0,
        least_per_second: least_per_second(piece_ns),
        ..SaturationRules::new(piece_ns as f64 / 1e9)
    }
}

/// The lowest rate that a piece of `piece_ns` nanoseconds tells anything about, in operations per second.
pub(super) fn least_per_second(piece_ns: u64) -> f64 {
    LEAST_DUE * 1e9 / piece_ns.max(1) as f64
}

/// The most pieces that a search at a number of VMs takes.
#[must_use]
pub fn most_pieces(plan: &OperationsPlan) -> u32 {
    rules(0, plan.piece_ns).most_runs()
}

/// A rate whose backlog stays as it is, is done: fewer may have arrived by chance. One of which more than every twentieth operation
/// failed, or found no VM or no answer, is not.
fn result(measured: &OperationsMeasured, offered: Option<f64>) -> RunResult {
    let latency = measured.latency_ns;
    let done = measured.per_minute() / 60.0;
    RunResult {
        achieved: offered
            .filter(|_| kept_up(measured) == Some(true))
            .map_or(done, |offered| done.max(offered)),
        mean_ns: latency.map(|latency| latency.mean),
        p99_ns: latency.map(|latency| latency.p99 as f64),
        limited_ns: latency.map(|latency| latency.p95 as f64),
    }
}

/// Whether a piece was kept up with: its backlog stayed as it was, and at most every twentieth operation failed. Nothing where the
/// piece does not tell.
pub(super) fn kept_up(measured: &OperationsMeasured) -> Option<bool> {
    let stayed = measured.steady.as_ref()?.kept_up?;
    let failed = measured.intended.saturating_sub(measured.done());
    Some(stayed && measured.done() > 0 && failed as f64 <= 0.05 * measured.intended as f64)
}

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_operations(conclusion: Conclusion, analysis: &OperationsAnalysis) -> OperationsSummary {
    let density = analysis.growth.iter().map(|(kind, growth)| {
        (*kind, DensityNumbers { factor: growth.factor, exponent: growth.exponent, bend: growth.bend })
    });
    let tenants = analysis.tenants.iter().map(|one| TenantNumbers {
        vms: one.vms,
        per_minute: one.per_minute,
        iops: one.iops.map(Into::into),
        p99: one.p99.map(Into::into),
    });
    OperationsSummary {
        conclusion,
        steps: analysis.steps.iter().map(step_numbers).collect(),
        density: density.collect(),
        clones: analysis.steps.iter().flat_map(clones).collect(),
        tenants: tenants.collect(),
        sustained_per_minute: analysis.sustained_per_minute,
        incomplete: analysis.incomplete.clone(),
    }
}

fn step_numbers(step: &StepAnalysis) -> OperationsStepNumbers {
    OperationsStepNumbers {
        vms: step.vms,
        per_minute: step.per_minute,
        achieved_per_minute: step.achieved.map(Into::into),
        score_per_minute: step.achieved.map(Into::into),
        kept_up: step.kept_up,
        mean_ns: step.latency_ns[0].map(Into::into),
        p95_ns: step.latency_ns[1].map(Into::into),
        intended: step.intended,
        not_issued: step.not_issued,
        management: step.management.iter().map(management).collect(),
        management_unavailable: step.management_unavailable.clone(),
        operations: step.kinds.iter().map(|(kind, one)| (*kind, latency(one))).collect(),
    }
}

fn management(one: &ManagementAnalysis) -> ManagementNumbers {
    ManagementNumbers {
        name: one.name.clone(),
        cpu_percent: one.cpu_percent,
        cpu_ns_each: one.cpu_ns_each,
        resident_bytes: one.resident_bytes,
    }
}

fn clones(step: &StepAnalysis) -> impl Iterator<Item = CloneNumbers> + '_ {
    step.clones.iter().map(|one| CloneNumbers {
        vms: step.vms,
        per_minute: step.per_minute,
        way: one.way,
        clone: latency(&one.kind),
        ratio: one.ratio.map(Into::into),
    })
}

fn latency(one: &KindAnalysis) -> LatencyNumbers {
    let [p50_ns, p90_ns, p99_ns] = one.percentiles_ns.map(|estimate| estimate.map(Into::into));
    LatencyNumbers {
        done: one.done,
        failed: one.failed.clone(),
        throughput_per_minute: one.throughput.map(Into::into),
        mean_ns: one.mean_and_p95_ns[0].map(Into::into),
        p50_ns,
        p90_ns,
        p95_ns: one.mean_and_p95_ns[1].map(Into::into),
        p99_ns,
        phases_ns: one.phases_ns.clone(),
        job: one.job.clone(),
        job_unavailable: one.job_unavailable.clone(),
    }
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
