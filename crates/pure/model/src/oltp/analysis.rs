//! What a study of a database comes to: the curve of each side, its saturation, and the sides against each other there and
//! at equal users ([Platform 2014], Table 4).

use std::collections::BTreeMap;

use virtbench_record::{
    ApplianceSide, ApplicationRow, OltpKind, OltpMeasured, OltpOutcome, OltpRecord, OltpSecond, OltpStep,
    OltpStudyPlan, Quantity,
};

use super::causes::{Causes, causes};
use super::users_search::{UsersFound, UsersPoint, UsersSearch};
use crate::application::{ApplicationAnalysis, analyse_application};
use crate::interval::Estimate;
use crate::kind::FigureKind;
use crate::together::sample_stddev;

/// A measurement is cut into so many parts, whose throughputs are compared: long enough that their noise is not that of
/// counting single transactions.
const PARTS: usize = 5;

/// Users against throughput and response time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OltpCurvePoint {
    /// Users, transactions per second, idle time.
    pub point: UsersPoint,
    /// 90th percentile of New-Order's response time, in nanoseconds.
    pub p90_ns: Option<f64>,
}

/// How far measurements of one side at its saturation are apart: standard deviations, in percent of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Between runs, each with a boot of its own; of at least two.
    pub between_percent: Option<f64>,
    /// Between the parts of a run, mean over the runs.
    pub within_percent: Option<f64>,
    /// Runs.
    pub runs: usize,
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub struct OltpSideAnalysis {
    /// The side.
    pub side: ApplianceSide,
    /// What the search tried, by ascending number of users.
    pub curve: Vec<OltpCurvePoint>,
    /// What saturates it.
    pub found: Option<UsersFound>,
    /// Its runs at saturation.
    pub spread: Spread,
    /// 90th percentile of New-Order's response time at saturation, in nanoseconds.
    pub p90_ns: Option<Estimate>,
    /// Where the variance of seconds lies; nothing without a timeline.
    pub causes: Option<Causes>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
    /// Whether a driver was the limit in any run at saturation.
    pub driver_is_limit: bool,
}

/// All sides.
#[derive(Debug, Clone, PartialEq)]
pub struct OltpAnalysis {
    /// The sides, the reference first.
    pub sides: Vec<OltpSideAnalysis>,
    /// Each at its own saturation.
    pub saturated: ApplicationAnalysis,
    /// All with as many users as saturate the side that takes fewest; nothing where all take as many.
    pub equal: ApplicationAnalysis,
}

/// What the records of a study come to.
#[must_use]
pub fn analyse_oltp(plan: &OltpStudyPlan, records: &[OltpRecord]) -> OltpAnalysis {
    let sides: Vec<OltpSideAnalysis> =
        plan.sides.iter().map(|side| one_side(side, records, plan.seed)).collect();
    let users = |side: &OltpSideAnalysis| side.found.map(|found| found.point.users);
    let fewest = sides.iter().filter_map(users).min();
    // The side that takes fewest has them at its own saturation.
    let equal_step = |side: &OltpSideAnalysis| {
        if users(side) == fewest { OltpStep::Saturation } else { OltpStep::EqualUsers }
    };
    let compared = |step: &dyn Fn(&OltpSideAnalysis) -> OltpStep| {
        let of_side = |side: &OltpSideAnalysis| -> Vec<ApplicationRow> {
            let measured = measured(records, &side.side.name, step(side));
            measured.map(|(record, measured)| row(record, measured)).collect()
        };
        analyse_application(&sides.iter().flat_map(of_side).collect::<Vec<_>>(), plan.seed)
    };
    let saturated = compared(&|_| OltpStep::Saturation);
    let differ = sides.iter().any(|side| users(side).is_some() && users(side) != fewest);
    let equal = if differ { compared(&equal_step) } else { analyse_application(&[], plan.seed) };
    OltpAnalysis { sides, saturated, equal }
}

fn measured<'a>(
    records: &'a [OltpRecord],
    side: &'a str,
    step: OltpStep,
) -> impl Iterator<Item = (&'a OltpRecord, &'a OltpMeasured)> {
    let of_step = move |record: &&OltpRecord| record.key.side == side && record.key.step == step;
    records.iter().filter(of_step).filter_map(|record| Some((record, record.measured()?)))
}

fn row(record: &OltpRecord, measured: &OltpMeasured) -> ApplicationRow {
    let own = [
        (Quantity::Users, f64::from(record.key.users)),
        (Quantity::TransactionsPerSecond, measured.outcome.transactions_per_second),
    ];
    let known = measured.known.iter().map(|(quantity, value)| (*quantity, *value)).chain(own);
    ApplicationRow {
        configuration: record.key.side.clone(),
        repetition: record.key.repetition,
        known: known.collect::<BTreeMap<_, _>>(),
    }
}

fn one_side(side: &ApplianceSide, records: &[OltpRecord], seed: u64) -> OltpSideAnalysis {
    let mut search = UsersSearch::new(u32::MAX);
    let mut curve: Vec<OltpCurvePoint> = Vec::new();
    for (record, measured) in measured(records, &side.name, OltpStep::Search) {
        let point = users_point(record, measured);
        search.observe(point);
        curve.push(OltpCurvePoint { point, p90_ns: p90_ns(&measured.outcome) });
    }
    curve.sort_by_key(|one| one.point.users);
    let runs: Vec<&OltpMeasured> =
        measured(records, &side.name, OltpStep::Saturation).map(|(_, measured)| measured).collect();
    let p90s: Vec<f64> = runs.iter().filter_map(|run| p90_ns(&run.outcome)).collect();
    let failures =
        records.iter().filter(|record| record.key.side == side.name).filter_map(OltpRecord::failure);
    OltpSideAnalysis {
        side: side.clone(),
        curve,
        found: search.found(),
        spread: spread(&runs),
        causes: causes(runs.iter().copied()),
        p90_ns: FigureKind::Positive.estimate(&p90s, seed),
        failures: failures.map(str::to_owned).collect(),
        driver_is_limit: runs.iter().any(|run| run.outcome.driver_is_limit),
    }
}

/// What a record of the search says to the search.
#[must_use]
pub fn users_point(record: &OltpRecord, measured: &OltpMeasured) -> UsersPoint {
    UsersPoint {
        users: record.key.users,
        per_second: measured.outcome.transactions_per_second,
        idle_percent: measured.known.get(&Quantity::IdlePercent).copied(),
    }
}

fn p90_ns(outcome: &OltpOutcome) -> Option<f64> {
    let new_order = outcome.transactions.get(OltpKind::NewOrder.name())?;
    new_order.latency_ns.map(|latency| latency.p90 as f64)
}

fn spread(runs: &[&OltpMeasured]) -> Spread {
    let means: Vec<f64> = runs.iter().map(|run| run.outcome.transactions_per_second).collect();
    let within: Vec<f64> = runs.iter().filter_map(|run| deviation_percent(&parts(&run.outcome))).collect();
    Spread {
        between_percent: deviation_percent(&means),
        within_percent: (!within.is_empty()).then(|| within.iter().sum::<f64>() / within.len() as f64),
        runs: runs.len(),
    }
}

/// Transactions a second in each part of a run.
fn parts(outcome: &OltpOutcome) -> Vec<f64> {
    let length = outcome.series.len() / PARTS;
    if length == 0 {
        return Vec::new();
    }
    let rate = |seconds: &[OltpSecond]| {
        let transactions: u64 = seconds.iter().map(|second| second.transactions).sum();
        let ns: u64 = seconds.iter().map(|second| second.length_ns).sum();
        transactions as f64 * 1e9 / ns.max(1) as f64
    };
    outcome.series.chunks_exact(length).take(PARTS).map(rate).collect()
}

/// The standard deviation of at least two samples, in percent of their mean.
fn deviation_percent(samples: &[f64]) -> Option<f64> {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    sample_stddev(samples).filter(|_| mean > 0.0).map(|deviation| 100.0 * deviation / mean)
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
