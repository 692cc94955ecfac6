//! Operations of one kind: what several pieces of a run come to.

use std::collections::BTreeMap;

use virtbench_record::{FailureKind, JobFigure, OperationNumbers, Phase};

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
    /// The mean and the 95th percentile, likewise: what [Platform 2014] tells of each operation.
    pub mean_and_p95_ns: [Option<Estimate>; 2],
    /// Done a minute in the steady state; nothing in what earlier versions measured.
    pub throughput: Option<Estimate>,
    /// Mean time in each phase, in nanoseconds.
    pub phases_ns: BTreeMap<Phase, f64>,
    /// What the platform told of them as jobs of its own: means.
    pub job: BTreeMap<JobFigure, f64>,
    /// Why it did not tell of some that it does as jobs.
    pub job_unavailable: Option<String>,
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

/// What these pieces come to.
pub(super) fn one_kind(pieces: &[&OperationNumbers], seed: u64) -> KindAnalysis {
    let mut failed: BTreeMap<FailureKind, u64> = BTreeMap::new();
    for (failure, count) in pieces.iter().flat_map(|piece| &piece.failed) {
        *failed.entry(*failure).or_default() += count;
    }
    let estimate = |percentile: fn(&virtbench_units::LatencySummary) -> f64| {
        let samples: Vec<f64> =
            pieces.iter().filter_map(|piece| Some(percentile(piece.latency_ns.as_ref()?))).collect();
        FigureKind::Positive.estimate(&samples, seed)
    };
    let done: u64 = pieces.iter().map(|piece| piece.done).sum();
    let mut phases_ns: BTreeMap<Phase, f64> = BTreeMap::new();
    for piece in pieces {
        for (phase, lengths) in &piece.phases_ns {
            *phases_ns.entry(*phase).or_default() += lengths.mean * piece.done as f64 / done.max(1) as f64;
        }
    }
    let percentiles_ns =
        [estimate(|one| one.p50 as f64), estimate(|one| one.p90 as f64), estimate(|one| one.p99 as f64)];
    let mean_and_p95_ns = [estimate(|one| one.mean), estimate(|one| one.p95 as f64)];
    let job_unavailable = pieces.iter().find_map(|piece| piece.job_unavailable.clone());
    KindAnalysis {
        done,
        failed,
        percentiles_ns,
        mean_and_p95_ns,
        throughput: None,
        phases_ns,
        job: jobs(pieces),
        job_unavailable,
    }
}

/// Means of what was told of jobs.
fn jobs(pieces: &[&OperationNumbers]) -> BTreeMap<JobFigure, f64> {
    let mut sums: BTreeMap<JobFigure, (f64, u64)> = BTreeMap::new();
    for (figure, one) in pieces.iter().flat_map(|piece| &piece.job) {
        let sum = sums.entry(*figure).or_default();
        *sum = (sum.0 + one.mean * one.jobs as f64, sum.1 + one.jobs);
    }
    sums.into_iter().map(|(figure, (sum, jobs))| (figure, sum / jobs.max(1) as f64)).collect()
}
