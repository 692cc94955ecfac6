//! Whether a target kept up with a rate.

use serde::Serialize;

use super::rules::{REPETITIONS, SaturationRules};
use crate::kind::FigureKind;

/// How many standard deviations of chance a shortfall must exceed. A search asks some ten times, and
/// one wrong answer far below saturation spoils it; at four, that is one search in three thousand.
const SIGMAS: f64 = 4.0;

/// What one run did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunResult {
    /// Operations completed per second.
    pub achieved: f64,
    /// Mean latency from the intended start, in nanoseconds; none where nothing completed.
    pub mean_ns: Option<f64>,
    /// 99th percentile of the latency, in nanoseconds.
    pub p99_ns: Option<f64>,
    /// The figure that the service level limits, in nanoseconds.
    pub limited_ns: Option<f64>,
}

/// What became of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was kept up with, within the service level.
    KeptUp,
    /// Fewer operations completed than were offered.
    FellShort,
    /// They completed, but too late for the service level.
    TooSlow,
}

/// Judges the runs of one rate. `None` while another run may change the verdict.
pub(super) fn judge(rules: &SaturationRules, per_second: f64, runs: &[RunResult]) -> Option<Verdict> {
    let last = runs.len() >= REPETITIONS.1;
    let kept_up = kept_up(rules, per_second, runs, last)?;
    if !kept_up {
        return Some(Verdict::FellShort);
    }
    let in_time = in_time(rules, runs, last)?;
    Some(if in_time { Verdict::KeptUp } else { Verdict::TooSlow })
}

/// Whether completions kept up. A shortfall is weighed against chance: that of Poisson arrivals,
/// which is known, and while there is time to repeat, that between the runs, which is seen.
fn kept_up(rules: &SaturationRules, per_second: f64, runs: &[RunResult], last: bool) -> Option<bool> {
    let n = runs.len() as f64;
    let shortfalls: Vec<f64> = runs.iter().map(|run| 1.0 - run.achieved / per_second).collect();
    let mean = shortfalls.iter().sum::<f64>() / n;
    let spread = (shortfalls.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n).sqrt();
    let arrivals = if rules.poisson { (per_second * rules.seconds * n).max(1.0).sqrt().recip() } else { 0.0 };
    if mean <= rules.slack {
        return Some(true);
    }
    if mean > rules.slack + SIGMAS * arrivals.max(spread) {
        return Some(false);
    }
    last.then_some(mean <= rules.slack + SIGMAS * arrivals)
}

/// Whether the service level was kept: decided when the confidence interval of how far the mean is beyond
/// the limit lies on one side of zero, or at last by the mean itself.
fn in_time(rules: &SaturationRules, runs: &[RunResult], last: bool) -> Option<bool> {
    let Some(slo) = rules.slo else { return Some(true) };
    let beyond = |run: &RunResult| run.limited_ns.unwrap_or(f64::MAX) - slo.limit_ns as f64;
    let estimate = FigureKind::Signed.estimate(&runs.iter().map(beyond).collect::<Vec<f64>>(), 0)?;
    match estimate.span() {
        Some(span) if span.high < 0.0 => Some(true),
        Some(span) if span.low > 0.0 => Some(false),
        _ => last.then_some(estimate.mean < 0.0),
    }
}
