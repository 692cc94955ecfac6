//! Did it get worse? Two runs of one plan, before a change and after it, at the points that both measured.

mod differences;
mod independent;

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::{Better, PointKey, PointRecord, Provenance};

use self::differences::differences;
use self::independent::LogRatio;
use crate::interval::Span;
use crate::pairwise::{Finding, LEVEL, Margin, VERDICT_CONFIDENCE};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes per second. More is better.
    Throughput,
    /// Mean latency, in nanoseconds. Less is better.
    MeanLatency,
    /// 99th percentile of latency, in nanoseconds. Less is better.
    P99Latency,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::MeanLatency, Self::P99Latency];

    /// As a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::MeanLatency => "mean latency",
            Self::P99Latency => "99th percentile",
        }
    }

    /// What became of it among these changes.
    #[must_use]
    pub fn find(self, changes: &[Change]) -> Option<&Change> {
        changes.iter().find(|change| change.quantity == self)
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "B/s",
            Self::MeanLatency | Self::P99Latency => "ns",
        }
    }

    /// Which direction is better.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::Throughput => Better::Higher,
            Self::MeanLatency | Self::P99Latency => Better::Lower,
        }
    }

    /// What a record has of it, in its unit.
    #[must_use]
    pub fn value(self, record: &PointRecord) -> Option<f64> {
        let total = &record.measured()?.outcome.total;
        match self {
            Self::Throughput => Some(total.bytes_per_second),
            Self::MeanLatency => Some(total.latency_ns?.mean),
            Self::P99Latency => Some(total.latency_ns?.p99 as f64),
        }
    }
}

/// What became of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Worse by more than the margin.
    Worse,
    /// Better by more than the margin.
    Better,
    /// Within the margin.
    Equivalent,
    /// More repetitions would tell.
    Undecided,
}

impl Direction {
    /// What a finding about a quantity means; nothing is decided of one that is neither good nor bad.
    #[must_use]
    pub fn of(finding: Finding, better: Better) -> Self {
        match (finding, better) {
            (Finding::Equivalent, _) => Self::Equivalent,
            (Finding::Undecided, _) | (_, Better::Neither) => Self::Undecided,
            (Finding::Higher, Better::Higher) | (Finding::Lower, Better::Lower) => Self::Better,
            (Finding::Higher, Better::Lower) | (Finding::Lower, Better::Higher) => Self::Worse,
        }
    }

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        }
    }
}

/// How a quantity changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// What was compared.
    pub quantity: Quantity,
    /// After as a multiple of before; of points, the geometric mean.
    pub ratio: f64,
    /// Its lower and upper end at 90 % confidence; none where a side was measured once.
    pub interval: Option<[f64; 2]>,
    /// What follows for this change by itself, wrong with a probability of at most 5 %. Without an interval it is read from
    /// the ratio alone.
    pub verdict: Direction,
    /// Whether it is worse even when it is allowed for that many changes were looked at: all such changes of two runs
    /// together are false with a probability of at most 5 %.
    pub regression: bool,
}

/// A point in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedPoint {
    /// Which point.
    pub point: PointKey,
    /// Repetitions before and after.
    pub repetitions: [usize; 2],
    /// Each quantity that both runs have.
    pub changes: Vec<Change>,
}

/// An environment in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedEnvironment {
    /// Its name.
    pub name: String,
    /// Each quantity over all points.
    pub overall: Vec<Change>,
    /// Point by point.
    pub points: Vec<ChangedPoint>,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// What else differs between the runs.
    pub differences: Vec<String>,
    /// Whether they were measured in turn, so that what changes slowly on a host is in both alike.
    pub alternated: bool,
    /// Each environment that both have.
    pub environments: Vec<ChangedEnvironment>,
    /// Points of one run only, each in one environment.
    pub unmatched_points: usize,
}

impl BeforeAfter {
    /// Whether anything became worse, allowing for how much was looked at.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        let points = |environment: &ChangedEnvironment| -> bool {
            environment.points.iter().flat_map(|point| &point.changes).any(|change| change.regression)
        };
        self.environments.iter().any(|environment| {
            environment.overall.iter().any(|change| change.regression) || points(environment)
        })
    }

    /// How many points came out how in a quantity, over all environments.
    #[must_use]
    pub fn tally(&self, quantity: Quantity) -> BTreeMap<Direction, usize> {
        let mut tally = BTreeMap::new();
        let points = self.environments.iter().flat_map(|environment| &environment.points);
        for change in points.flat_map(|point| &point.changes).filter(|change| change.quantity == quantity) {
            *tally.entry(change.verdict).or_default() += 1;
        }
        tally
    }
}

/// Samples of each point of each environment.
type Samples<'r> = BTreeMap<(&'r str, PointKey), Vec<&'r PointRecord>>;

/// Compares two runs at the points of the environments that both have. Repetitions of one run have no counterpart in the
/// other: they are pooled.
#[must_use]
pub fn before_after([before, after]: [(&Provenance, &[PointRecord]); 2], margin: Margin) -> BeforeAfter {
    let [old, new] = [before.1, after.1].map(samples);
    let common: Vec<&(&str, PointKey)> = old.keys().filter(|key| new.contains_key(*key)).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in before.0.plan.environments().iter().map(String::as_str) {
        if common.iter().any(|(other, _)| *other == name) && !names.contains(&name) {
            names.push(name);
        }
    }
    // Half of what may be false goes to the points, half to the environments.
    let quantities = Quantity::ALL.len();
    let adjusted = |number: usize| 1.0 - LEVEL / (number * quantities).max(1) as f64;
    let (of_points, of_all) = (adjusted(common.len()), adjusted(names.len()));
    let environments = names.into_iter().map(|name| {
        let mut overall: BTreeMap<Quantity, Vec<LogRatio>> = BTreeMap::new();
        let points = common.iter().filter(|(other, _)| *other == name).map(|key| {
            let sides = [&old[*key], &new[*key]];
            let changes = Quantity::ALL.into_iter().filter_map(|quantity| {
                let values = sides
                    .map(|side| side.iter().filter_map(|record| quantity.value(record)).collect::<Vec<_>>());
                let ratio = LogRatio::new(&values[0], &values[1])?;
                overall.entry(quantity).or_default().push(ratio.clone());
                Some(change(quantity, &ratio, margin, of_points))
            });
            ChangedPoint { point: key.1, repetitions: sides.map(Vec::len), changes: changes.collect() }
        });
        let points = points.collect();
        let overall = overall.iter().filter_map(|(quantity, ratios)| {
            Some(change(*quantity, &LogRatio::mean(ratios)?, margin, of_all))
        });
        ChangedEnvironment { name: name.to_owned(), overall: overall.collect(), points }
    });
    BeforeAfter {
        margin: margin.share(),
        differences: differences(before.0, after.0),
        alternated: alternated(before.1, after.1),
        environments: environments.collect(),
        unmatched_points: old.len() + new.len() - 2 * common.len(),
    }
}

fn samples(records: &[PointRecord]) -> Samples<'_> {
    let mut samples = Samples::new();
    for record in records.iter().filter(|record| record.measured().is_some()) {
        samples.entry((record.environment.as_str(), record.point)).or_default().push(record);
    }
    samples
}

fn change(quantity: Quantity, ratio: &LogRatio, margin: Margin, adjusted: f64) -> Change {
    let value = ratio.ratio();
    let judged = |span: Option<Span>| {
        Direction::of(margin.finding(span.unwrap_or(Span { low: value, high: value })), quantity.better())
    };
    let interval = ratio.interval(VERDICT_CONFIDENCE);
    let careful = ratio.interval(adjusted);
    Change {
        quantity,
        ratio: value,
        interval: interval.map(|span| [span.low, span.high]),
        verdict: judged(interval),
        regression: careful.is_some() && judged(careful) == Direction::Worse,
    }
}

/// Whether each run began before the other had ended.
fn alternated(before: &[PointRecord], after: &[PointRecord]) -> bool {
    let range = |records: &[PointRecord]| {
        let times = || records.iter().map(|record| record.started_unix_ns);
        Some((times().min()?, times().max()?))
    };
    match (range(before), range(after)) {
        (Some(before), Some(after)) => before.0 < after.1 && after.0 < before.1,
        _ => false,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
