//! How much a target can do, and what it costs to come near; also the most of something that fits.
//!
//! [VirtualFence 2013] (section 4.3) produces "a load of x % of saturation by finding the saturation throughput"
//! first. Here that is a search in three stages, none of which runs anything itself:
//!
//! 1. **closed loop**: as much as the target does when it is never left idle;
//! 2. **bisection**: the highest rate of an open loop that is kept up with. A rate is too high where
//!    completions fall short of it by more than the noise, or latency breaks the service level;
//! 3. **curve**: latency at shares of that rate.
//!
//! ```text
//! next_probe() -> Probe -> the caller applies it -> observe(RunResult) -> next_probe() -> ... -> None
//! ```
//!
//! A search for the most of something that fits: doubled until it is too many, then halved in between until two neighbours are
//! known.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::interval::{Estimate, FigureKind, Span};
use crate::repetition::{Progress, RepeatRule};
use crate::slo::Slo;

/// How far a rate that was kept up with is raised while none was too high.
const RAISE: f64 = 1.15;

/// What to run next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Probe {
    /// The load as it is, in a closed loop.
    Closed,
    /// The load in an open loop.
    Offered {
        /// Operations per second.
        per_second: f64,
    },
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saturation {
    /// What the closed loop did in each run, in operations per second.
    pub closed_loop: Vec<f64>,
    /// The highest rate that was kept up with, in operations per second; 0 if none was.
    pub rate: f64,
    /// That rate, and the lowest that was too high.
    pub bounds: Span,
    /// Whether the bounds are as close as was asked for.
    pub resolved: bool,
    /// Every rate that was tried in the bisection, in the order it was tried, with its verdict.
    pub tried: Vec<Tried>,
    /// The latency-throughput curve, by ascending rate.
    pub curve: Vec<CurvePoint>,
    /// Where the curve bends.
    pub knee: Option<Knee>,
}

/// A rate of the bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What came of it.
    #[serde(flatten)]
    pub point: CurvePoint,
    /// Whether it was kept up with.
    pub verdict: Verdict,
}

/// The search itself.
#[derive(Debug, Clone)]
pub struct SaturationSearch {
    rules: SaturationRules,
    closed: Vec<f64>,
    low: f64,
    high: Option<f64>,
    runs: Vec<RunResult>,
    tried: Vec<Tried>,
    curve: Vec<CurvePoint>,
    shares: Vec<f64>,
}

impl SaturationSearch {
    /// A search under these rules.
    #[must_use]
    pub fn new(rules: SaturationRules) -> Self {
        let shares = shares(rules.points.min(MAX_CURVE_POINTS));
        Self {
            rules,
            closed: Vec::new(),
            low: 0.0,
            high: None,
            runs: Vec::new(),
            tried: Vec::new(),
            curve: Vec::new(),
            shares,
        }
    }

    fn closed_is_known(&self) -> bool {
        CLOSED.judge(&self.closed, 0) != Progress::More
    }

    fn closed_rate(&self) -> f64 {
        self.closed.iter().sum::<f64>() / self.closed.len().max(1) as f64
    }

    fn is_resolved(&self) -> bool {
        self.high.is_some_and(|high| high - self.low <= self.rules.resolution * high)
    }

    fn is_bracketed(&self) -> bool {
        // Far below the closed loop's rate nothing would be left to draw a curve of.
        let hopeless = self.high.is_some_and(|high| self.low == 0.0 && high < self.closed_rate() / 1_000.0);
        let tells_nothing = self.rate() < self.rules.least_per_second;
        self.is_resolved() || hopeless || tells_nothing || self.tried.len() >= MOST_RATES as usize
    }

    /// The rate being tried.
    fn rate(&self) -> f64 {
        match self.high {
            None if self.low == 0.0 => self.closed_rate(),
            None => self.low * RAISE,
            // Without a service level the answer is just below the first rate that was too high.
            Some(high) if self.low == 0.0 && self.rules.slo.is_none() && self.tried.len() == 1 => 0.9 * high,
            Some(high) => f64::midpoint(self.low, high),
        }
    }

    /// What to run next; `None` when everything is known, or the closed loop did nothing at all.
    #[must_use]
    pub fn next_probe(&self) -> Option<Probe> {
        if !self.closed_is_known() {
            return Some(Probe::Closed);
        }
        if self.closed_rate() <= 0.0 {
            return None;
        }
        if !self.is_bracketed() {
            return Some(Probe::Offered { per_second: self.rate() });
        }
        let share = self.shares.get(self.curve.len()).filter(|_| self.low > 0.0)?;
        Some(Probe::Offered { per_second: share * self.low })
    }

    /// Takes in what the probe of [`Self::next_probe`] did.
    pub fn observe(&mut self, figures: RunResult) {
        match self.next_probe() {
            None => {}
            Some(Probe::Closed) => self.closed.push(figures.achieved),
            Some(Probe::Offered { per_second }) => {
                self.runs.push(figures);
                if self.is_bracketed() {
                    self.add_to_curve(per_second);
                } else {
                    self.judge_rate(per_second);
                }
            }
        }
    }

    fn judge_rate(&mut self, per_second: f64) {
        let verdict = judge(&self.rules, per_second, &self.runs);
        let Some(verdict) = verdict.filter(|_| self.runs.len() >= REPETITIONS.0) else { return };
        match verdict {
            Verdict::KeptUp => self.low = per_second,
            Verdict::FellShort | Verdict::TooSlow => self.high = Some(per_second),
        }
        self.tried.push(Tried { point: curve_point(per_second, &self.runs), verdict });
        self.runs.clear();
    }

    fn add_to_curve(&mut self, per_second: f64) {
        if self.runs.len() >= self.rules.repetitions.max(1) as usize {
            self.curve.push(curve_point(per_second, &self.runs));
            self.runs.clear();
        }
    }

    /// What is known by now; after [`Self::next_probe`] has said `None`, everything.
    #[must_use]
    pub fn result(&self) -> Saturation {
        Saturation {
            closed_loop: self.closed.clone(),
            rate: self.low,
            bounds: Span { low: self.low, high: self.high.unwrap_or(f64::INFINITY) },
            resolved: self.is_resolved(),
            tried: self.tried.clone(),
            curve: self.curve.clone(),
            knee: knee_by_power(&self.curve),
        }
    }
}

/// Shares of saturation that every curve has: those which other experiments ask for.
const WANTED: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 1.0];

/// A rate and what came of it: means over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Operations per second that were offered.
    pub offered: f64,
    /// Operations per second that completed.
    pub achieved: Option<Estimate>,
    /// Mean latency from the intended start, in nanoseconds.
    pub mean_ns: Option<Estimate>,
    /// 99th percentile of the latency, in nanoseconds.
    pub p99_ns: Option<Estimate>,
    /// Every run.
    pub runs: Vec<RunResult>,
}

/// Sums up the runs of one rate.
fn curve_point(offered: f64, runs: &[RunResult]) -> CurvePoint {
    let over_runs = |figure: fn(&RunResult) -> Option<f64>| {
        FigureKind::Positive.estimate(&runs.iter().filter_map(figure).collect::<Vec<f64>>(), 0)
    };
    CurvePoint {
        offered,
        achieved: over_runs(|run| Some(run.achieved)),
        mean_ns: over_runs(|run| run.mean_ns),
        p99_ns: over_runs(|run| run.p99_ns),
        runs: runs.to_vec(),
    }
}

/// At which shares of saturation latency is measured: those wanted by all, then the middle of the
/// widest gap until there are `count`.
fn shares(count: u32) -> Vec<f64> {
    let mut shares = WANTED.to_vec();
    while shares.len() < count as usize {
        let below = |index: usize| if index == 0 { 0.0 } else { shares[index - 1] };
        let widest = (0..shares.len())
            .max_by(|a, b| (shares[*a] - below(*a)).total_cmp(&(shares[*b] - below(*b))))
            .unwrap_or(0);
        shares.insert(widest, f64::midpoint(below(widest), shares[widest]));
    }
    shares
}

/// Where a curve bends: below it latency is cheap, above it throughput is dear.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// Operations per second.
    pub rate: f64,
    /// Mean latency there, in nanoseconds.
    pub mean_ns: f64,
}

/// The knee as the rate of greatest power, throughput over mean latency (Kleinrock, "Power and
/// deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979):
/// the point where a ray from the origin touches the curve. It needs no smoothing parameter, and is
/// known for queues: half of saturation for M/M/1. Between measured points it is the top of the
/// parabola through the logarithms of the three best. `None` below three points.
#[must_use]
pub fn knee_by_power(curve: &[CurvePoint]) -> Option<Knee> {
    let mut points: Vec<(f64, f64)> = curve
        .iter()
        .filter_map(|point| Some((point.achieved?.mean, point.mean_ns?.mean)))
        .filter(|(rate, latency)| *rate > 0.0 && *latency > 0.0)
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 <= b.0);
    if points.len() < 3 {
        return None;
    }
    let power = |index: usize| points[index].0.ln() - points[index].1.ln();
    let best = (0..points.len()).max_by(|a, b| power(*a).total_cmp(&power(*b)))?;
    let middle = best.clamp(1, points.len() - 2);
    let x = |offset: usize| points[middle + offset - 1].0;
    let y = |offset: usize| power(middle + offset - 1);
    let (left, right) = ((y(1) - y(0)) / (x(1) - x(0)), (y(2) - y(1)) / (x(2) - x(1)));
    let bend = (right - left) / (x(2) - x(0));
    let top = if bend < 0.0 { f64::midpoint(x(0), x(1)) - left / (2.0 * bend) } else { points[best].0 };
    // A curve that is still climbing at its end has its knee there, not beyond what was measured.
    let rate = top.clamp(x(0), x(2));
    Some(Knee { rate, mean_ns: interpolate(&points, rate) })
}

/// Latency at `rate`, on straight lines between the points.
fn interpolate(points: &[(f64, f64)], rate: f64) -> f64 {
    let upper = points.iter().position(|(known, _)| *known >= rate).unwrap_or(points.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (points[upper - 1], points[upper]);
    y0 + (y1 - y0) * ((rate - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

/// The most points a curve can have.
pub const MAX_CURVE_POINTS: u32 = 100;

/// The most rates that are tried before the search takes what it has.
const MOST_RATES: u32 = 16;

/// Repetitions of a rate: at least, and at most where the verdict hangs in the balance.
const REPETITIONS: (usize, usize) = (2, 5);

/// What the search is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturationRules {
    /// The service level, if latency is limited.
    pub slo: Option<Slo>,
    /// Completions may fall this far short of the rate, as a share of it, without being called short.
    pub slack: f64,
    /// The bisection ends when the bounds are this close, as a share of the upper one.
    pub resolution: f64,
    /// Measuring time of a run, in seconds.
    pub seconds: f64,
    /// A run at a lower rate holds too few operations to tell whether it is kept up with, in operations per second; 0 where any tells.
    pub least_per_second: f64,
    /// Whether arrivals are random, so that their number itself varies.
    pub poisson: bool,
    /// Points of the curve.
    pub points: u32,
    /// Repetitions of each point of the curve.
    pub repetitions: u32,
}

impl SaturationRules {
    /// A slack of 1 %, a resolution of 2 %, 12 points of two repetitions, random arrivals.
    #[must_use]
    pub fn new(seconds: f64) -> Self {
        Self {
            slo: None,
            slack: 0.01,
            resolution: 0.02,
            seconds,
            least_per_second: 0.0,
            poisson: true,
            points: 12,
            repetitions: 2,
        }
    }

    /// The most runs that a search under these rules can ask for.
    #[must_use]
    pub fn most_runs(&self) -> u32 {
        CLOSED.most() + MOST_RATES * 5 + self.points.min(MAX_CURVE_POINTS) * self.repetitions.max(1)
    }
}

/// Repetitions of the closed loop.
const CLOSED: RepeatRule = RepeatRule::Until { half_width: 0.05, most: 5 };

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
fn judge(rules: &SaturationRules, per_second: f64, runs: &[RunResult]) -> Option<Verdict> {
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

/// Which numbers are measured.
pub(crate) enum Numbers<'a> {
    /// These, in this order.
    Given(&'a [u32]),
    /// Those of a search.
    Search {
        /// The most that is tried.
        most: u32,
        /// What was tried and is to be repeated.
        tried: BTreeSet<u32>,
        /// What it has found so far; asked for when all repetitions are there.
        bracket: &'a dyn Fn() -> Bracket,
    },
}

/// What a study still has to measure, from what its run folder holds.
pub(crate) struct Course<'a> {
    pub(crate) numbers: Numbers<'a>,
    pub(crate) repetitions: u32,
    /// Whether a repetition of a number is there.
    pub(crate) is_there: &'a dyn Fn(u32, u32) -> bool,
}

impl Course<'_> {
    fn missing(&self, number: u32) -> impl Iterator<Item = u32> {
        (0..self.repetitions).filter(move |repetition| !(self.is_there)(number, *repetition))
    }

    /// The next number and which repetition it is; nothing once everything is there.
    pub(crate) fn next(&self) -> Option<(u32, u32)> {
        let missing = |number: u32| self.missing(number).next().map(|repetition| (number, repetition));
        match &self.numbers {
            Numbers::Given(numbers) => numbers.iter().copied().find_map(missing),
            Numbers::Search { most, tried, bracket } => {
                tried.iter().copied().find_map(missing).or_else(|| missing(bracket().next(*most)?))
            }
        }
    }

    /// How many measurements are left at most. `None` for a search that has not gone too far yet.
    pub(crate) fn left(&self) -> Option<u64> {
        let unfinished = |numbers: &BTreeSet<u32>| -> u64 {
            numbers.iter().map(|number| self.missing(*number).count() as u64).sum()
        };
        Some(match &self.numbers {
            Numbers::Given(numbers) => unfinished(&numbers.iter().copied().collect()),
            Numbers::Search { tried, bracket, .. } => {
                u64::from(bracket().left()?) * u64::from(self.repetitions) + unfinished(tried)
            }
        })
    }
}

/// What a search has found so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bracket {
    /// The most that fit; 0 for none.
    pub(crate) fits: u32,
    /// The fewest that are too many.
    pub(crate) too_many: Option<u32>,
}

impl Bracket {
    /// The next number to try of up to `most`; nothing once both neighbours are known, or `most` fit.
    pub(crate) fn next(self, most: u32) -> Option<u32> {
        match self.too_many {
            None => (self.fits < most).then(|| (self.fits * 2).clamp(1, most)),
            Some(too_many) => (too_many > self.fits + 1).then(|| self.fits.midpoint(too_many)),
        }
    }

    /// How many more numbers are tried at most. `None` before one was too many.
    pub(crate) fn left(self) -> Option<u32> {
        let between = self.too_many?.saturating_sub(self.fits).max(1);
        Some(u32::BITS - (between - 1).leading_zeros())
    }
}

#[cfg(test)]
#[path = "saturation_tests.rs"]
mod queue_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve without noise, from a formula of the latency by share of saturation.
    fn drawn(latency: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let point = |share: &f64| {
            let figures = RunResult {
                achieved: share * 1e4,
                mean_ns: Some(latency(*share)),
                p99_ns: None,
                limited_ns: None,
            };
            curve_point(share * 1e4, &[figures])
        };
        shares(12).iter().filter(|share| **share < 1.0).map(point).collect()
    }

    #[test]
    fn the_shares_hold_the_wanted_ones_and_leave_no_gap() {
        assert_eq!(shares(1), WANTED);
        let twelve = shares(12);
        assert_eq!(twelve.len(), 12);
        assert!(WANTED.iter().all(|share| twelve.contains(share)));
        assert!(twelve.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 0.126), "{twelve:?}");
    }

    #[test]
    fn the_knee_of_a_queue_is_where_theory_has_it() {
        let markov = knee_by_power(&drawn(|rho| 1e5 / (1.0 - rho))).unwrap();
        assert!((markov.rate / 1e4 - 0.5).abs() < 0.02, "{markov:?}");
        assert!((markov.mean_ns / 2e5 - 1.0).abs() < 0.1, "{markov:?}");
        let constant = knee_by_power(&drawn(|rho| 1e5 * (1.0 + rho / (2.0 * (1.0 - rho))))).unwrap();
        assert!((constant.rate / 1e4 - (2.0 - 2f64.sqrt())).abs() < 0.02, "{constant:?}");
    }

    #[test]
    fn a_curve_that_never_bends_has_its_knee_at_its_end() {
        let flat = knee_by_power(&drawn(|_| 1e5)).unwrap();
        assert!(flat.rate > 8.9e3, "{flat:?}");
        assert_eq!(knee_by_power(&drawn(|_| 1e5)[..2]), None);
    }
}
