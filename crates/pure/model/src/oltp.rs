//! A database under TPC-C's transactions on several sides: what to measure next, and what it comes to.
//!
//! What a study of a database comes to: the curve of each side, its saturation, and the sides against each other there and
//! at equal users ([Platform 2014], Table 4).
//!
//! How many users saturate a database: the next number to try is decided without running anything.
//!
//! Users are doubled until the processors are saturated or throughput stops growing; then the steps between the best
//! number and its neighbours are tried. The answer is the least number that does as much as any, within the noise.
//!
//! Where the spread of a database's seconds comes from: how much of their variance lies in seconds in which something else
//! happened too.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{
    ApplianceSide, ApplicationRow, Conclusion, OltpCause, OltpCauseNumbers, OltpCurveNumbers, OltpKind,
    OltpMeasured, OltpOutcome, OltpRecord, OltpSecond, OltpSideNumbers, OltpStep, OltpStudyPlan, OltpSummary,
    OltpTimeline, Quantity,
};
#[cfg(test)]
use virtbench_samples::oltp as synthetic;

use crate::application::{ApplicationAnalysis, analyse_application, application_numbers};
use crate::interval::{Estimate, FigureKind};
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

/// Below this share of idle time, in percent, processors are saturated ([Platform 2014], Table 4: 1.4 to 2.6 %).
pub const SATURATED_IDLE_PERCENT: f64 = 3.0;

/// Throughput that is less than this share above the best before has stopped growing.
const GROWTH: f64 = 0.05;

/// Numbers whose throughput differs by less than this share do the same.
const SAME: f64 = 0.02;

/// Doublings without growth after which nothing more is expected.
const FLAT: usize = 2;

/// What a number of users did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsersPoint {
    /// The number.
    pub users: u32,
    /// Transactions per second.
    pub per_second: f64,
    /// Idle time of the side's processors, in percent of all of them; where it is known.
    pub idle_percent: Option<f64>,
}

/// Why the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsersEnd {
    /// The processors are saturated.
    Saturated,
    /// More users do not do more, though processors are left: something else is the limit.
    NoGrowth,
    /// More users than this were not to be tried.
    MostUsers,
}

impl UsersEnd {
    /// As programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Saturated => "saturated",
            Self::NoGrowth => "no_growth",
            Self::MostUsers => "most_users",
        }
    }
}

/// How many users saturate a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsersFound {
    /// The number with what it did.
    pub point: UsersPoint,
    /// Why more were not tried.
    pub end: UsersEnd,
}

/// The search.
#[derive(Debug, Clone)]
pub struct UsersSearch {
    most: u32,
    points: Vec<UsersPoint>,
}

impl UsersSearch {
    /// A search among 1 to `most` users, at least one.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most: most.max(1), points: Vec::new() }
    }

    /// The number to try next; `None` once the answer is known.
    #[must_use]
    pub fn next_users(&self) -> Option<u32> {
        let Some(last) = self.points.iter().map(|point| point.users).max() else { return Some(1) };
        if self.rising_end().is_none() {
            return Some(last.saturating_mul(2).min(self.most));
        }
        let best = self.best()?;
        let mut numbers: Vec<u32> = self.points.iter().map(|point| point.users).collect();
        numbers.sort_unstable();
        let at = numbers.iter().position(|users| *users == best.users)?;
        let below = at.checked_sub(1).map(|index| numbers[index]);
        let above = numbers.get(at + 1).copied();
        // Doubling leaves a factor of four around the best. A step to either side is enough: the curve is flat there.
        let gap = |low: u32, high: u32| (high - low > 1 && high >= 2 * low).then(|| u32::midpoint(low, high));
        above
            .and_then(|above| gap(best.users, above))
            .or_else(|| below.and_then(|below| gap(below, best.users)))
    }

    /// Takes in what the number of [`Self::next_users`] did.
    pub fn observe(&mut self, point: UsersPoint) {
        self.points.push(point);
    }

    /// Everything that was tried, by ascending number of users.
    #[must_use]
    pub fn points(&self) -> Vec<UsersPoint> {
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.users);
        points
    }

    /// The answer so far; `None` before anything was tried.
    #[must_use]
    pub fn found(&self) -> Option<UsersFound> {
        let point = self.best()?;
        Some(UsersFound { point, end: self.rising_end().unwrap_or(UsersEnd::MostUsers) })
    }

    /// The least number that does as much as any.
    fn best(&self) -> Option<UsersPoint> {
        let most = self.points.iter().map(|point| point.per_second).fold(0.0, f64::max);
        self.points().into_iter().find(|point| point.per_second >= (1.0 - SAME) * most)
    }

    /// Why doubling has ended, if it has.
    fn rising_end(&self) -> Option<UsersEnd> {
        let points = self.points();
        let saturated =
            |point: &UsersPoint| point.idle_percent.is_some_and(|idle| idle < SATURATED_IDLE_PERCENT);
        let mut best: f64 = 0.0;
        let mut flat = 0;
        let mut was_saturated = false;
        for point in &points {
            let grows = point.per_second > (1.0 + GROWTH) * best;
            flat = if grows { 0 } else { flat + 1 };
            best = best.max(point.per_second);
            // Saturated processors may still do more with more users, which wait less for each other.
            if was_saturated && !grows {
                return Some(UsersEnd::Saturated);
            }
            was_saturated |= saturated(point);
            if flat >= FLAT {
                return Some(UsersEnd::NoGrowth);
            }
        }
        let last = points.last()?;
        (last.users >= self.most).then_some(if was_saturated {
            UsersEnd::Saturated
        } else {
            UsersEnd::MostUsers
        })
    }
}

/// Stolen time counts from this share of one processor on, in percent.
const STOLEN_PERCENT: f64 = 5.0;

/// Caches count as cold for so long, in nanoseconds since measuring began.
const COLD_NS: u64 = 5_000_000_000;

/// A second that is shorter, at the end, is left out.
const WHOLE_NS: u64 = 900_000_000;

/// Seconds with a mark, of all seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MarkedSeconds {
    /// How many there are.
    pub seconds: usize,
    /// How much of the variance of all seconds lies in them, as a share.
    pub variance_share: f64,
    /// Their mean throughput as a multiple of that of all.
    pub throughput_ratio: f64,
}

/// Where the variance of seconds lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Causes {
    /// Seconds in all.
    pub seconds: usize,
    /// By cause. A second may have several.
    pub by_cause: Vec<(OltpCause, MarkedSeconds)>,
    /// Seconds with any cause.
    pub marked: MarkedSeconds,
    /// What is not known, and why not.
    pub unavailable: Vec<String>,
}

/// A second's distance from the mean of its run, squared, in units of that mean; its throughput in that unit; its marks.
struct MeasuredSecond {
    square: f64,
    relative: f64,
    marks: BTreeSet<OltpCause>,
}

/// The causes in these runs of one side; nothing without a timeline.
#[must_use]
pub fn causes<'a>(runs: impl IntoIterator<Item = &'a OltpMeasured>) -> Option<Causes> {
    let (mut seen, mut unavailable) = (Vec::new(), BTreeSet::new());
    for run in runs {
        let Some(timeline) = &run.timeline else { continue };
        unavailable.extend(timeline.unavailable.iter().cloned());
        let whole: Vec<&OltpSecond> =
            run.outcome.series.iter().filter(|second| second.length_ns >= WHOLE_NS).collect();
        let mean = whole.iter().map(|second| rate(second)).sum::<f64>() / whole.len().max(1) as f64;
        if mean <= 0.0 {
            continue;
        }
        seen.extend(whole.into_iter().map(|second| {
            let relative = rate(second) / mean;
            MeasuredSecond { square: (relative - 1.0).powi(2), relative, marks: marks(second, timeline) }
        }));
    }
    let all: f64 = seen.iter().map(|second| second.square).sum();
    let of = |holds: &dyn Fn(&MeasuredSecond) -> bool| {
        let chosen: Vec<&MeasuredSecond> = seen.iter().filter(|second| holds(second)).collect();
        let number = chosen.len().max(1) as f64;
        MarkedSeconds {
            seconds: chosen.len(),
            variance_share: if all > 0.0 {
                chosen.iter().map(|second| second.square).sum::<f64>() / all
            } else {
                0.0
            },
            throughput_ratio: chosen.iter().map(|second| second.relative).sum::<f64>() / number,
        }
    };
    let by_cause = OltpCause::ALL.map(|cause| (cause, of(&|second| second.marks.contains(&cause))));
    (!seen.is_empty()).then(|| Causes {
        seconds: seen.len(),
        by_cause: by_cause.into_iter().filter(|(_, marked)| marked.seconds > 0).collect(),
        marked: of(&|second| !second.marks.is_empty()),
        unavailable: unavailable.into_iter().collect(),
    })
}

fn rate(second: &OltpSecond) -> f64 {
    second.transactions as f64 * 1e9 / second.length_ns.max(1) as f64
}

/// What happened in a second of a run.
#[must_use]
pub fn marks(second: &OltpSecond, timeline: &OltpTimeline) -> BTreeSet<OltpCause> {
    let (begin, end) = (second.start_ns, second.start_ns.saturating_add(second.length_ns));
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let overlap =
        timeline.events.iter().filter(|event| event.begin_ns < signed(end) && event.end_ns > signed(begin));
    let mut marks: BTreeSet<OltpCause> = overlap.map(|event| event.cause).collect();
    let middle = begin + second.length_ns / 2;
    let at = timeline.seconds.iter().rev().find(|at| at.start_ns <= middle);
    if let Some(at) = at.filter(|at| middle - at.start_ns < 2_000_000_000) {
        if at.steal_percent >= STOLEN_PERCENT {
            marks.insert(OltpCause::StolenTime);
        }
        if at.busy {
            marks.insert(OltpCause::BusyHost);
        }
    }
    if begin < COLD_NS {
        marks.insert(OltpCause::ColdCache);
    }
    marks
}

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_oltp(conclusion: Conclusion, analysis: &OltpAnalysis) -> OltpSummary {
    let (saturated, saturated_ratios) = application_numbers(&analysis.saturated);
    let (equal, equal_ratios) = application_numbers(&analysis.equal);
    let sides = analysis.sides.iter().map(side).collect();
    OltpSummary { conclusion, sides, saturated, saturated_ratios, equal, equal_ratios }
}

fn side(one: &OltpSideAnalysis) -> OltpSideNumbers {
    let curve = one.curve.iter().map(|at| OltpCurveNumbers {
        users: at.point.users,
        transactions_per_second: at.point.per_second,
        p90_ns: at.p90_ns,
        idle_percent: at.point.idle_percent,
    });
    OltpSideNumbers {
        side: one.side.clone(),
        users: one.found.map(|found| found.point.users),
        end: one.found.map(|found| found.end.name().to_owned()),
        p90_ns: one.p90_ns.map(Into::into),
        between_runs_percent: one.spread.between_percent,
        within_run_percent: one.spread.within_percent,
        causes: one.causes.as_ref().map(cause_numbers).unwrap_or_default(),
        curve: curve.collect(),
        failures: one.failures.clone(),
    }
}

fn cause_numbers(causes: &Causes) -> Vec<OltpCauseNumbers> {
    let numbers = |cause, marked: &MarkedSeconds| OltpCauseNumbers {
        cause,
        seconds: marked.seconds,
        of_seconds: causes.seconds,
        variance_percent: 100.0 * marked.variance_share,
        throughput_ratio: marked.throughput_ratio,
    };
    let each = causes.by_cause.iter().map(|(cause, marked)| numbers(Some(*cause), marked));
    std::iter::once(numbers(None, &causes.marked)).chain(each).collect()
}

#[cfg(test)]
#[path = "oltp_analysis_tests.rs"]
mod analysis_tests;

#[cfg(test)]
#[path = "oltp_users_search_tests.rs"]
mod users_search_tests;

#[cfg(test)]
#[path = "oltp_causes_tests.rs"]
mod causes_tests;
