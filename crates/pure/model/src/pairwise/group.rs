//! Which configuration for which kind of I/O.
//!
//! Points are taken together by kind (share of reads and of random seeks) and by size, small to
//! [`SMALL_MOST_BYTES`] and large beyond. A configuration's figure for a repetition of a group is the
//! geometric mean over the group's points, so that each point weighs alike; what is chance is then the
//! spread from one repetition to the next, and the points are those a reader asked about.

use std::collections::BTreeMap;

use virtbench_record::PointKey;
use virtbench_units::SeedSequence;

use super::verdict::{Cell, Finding, Judged, LEVEL, Margin, Measurements, Metric};
use crate::ratio::paired_ratio_at;

/// The largest block that is called small, in bytes: [ESX Adapters 2006] sets 4, 8 and 16 KiB apart, as those of
/// databases and mail servers.
pub const SMALL_MOST_BYTES: u64 = 16 << 10;

/// A kind of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Share of random seeks, in percent.
    pub random_percent: u8,
    /// Share of reads, in percent.
    pub read_percent: u8,
}

impl std::fmt::Display for Kind {
    /// `sequential reads`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = Access(self.random_percent);
        match self.read_percent {
            0 => write!(f, "{access} writes"),
            100 => write!(f, "{access} reads"),
            some => write!(f, "{access} I/O with {some} % reads"),
        }
    }
}

/// A share of random seeks in words, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access(pub u8);

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("sequential"),
            100 => f.write_str("random"),
            some => write!(f, "{some} % random"),
        }
    }
}

impl From<PointKey> for Kind {
    fn from(key: PointKey) -> Self {
        Self { random_percent: key.random_percent, read_percent: key.read_percent }
    }
}

/// How a configuration did in a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its index.
    pub configuration: usize,
    /// Throughput, in bytes per second: the geometric mean over the group's points and repetitions.
    pub bytes_per_second: f64,
    /// I/O per %CPU, likewise; none where a point has none.
    pub iops_per_cpu_percent: Option<f64>,
    /// Its throughput against the best's, with an interval that allows for the choice of the best; none
    /// for the best itself, or without a common repetition.
    pub against_best: Option<Judged>,
}

/// Points of one kind and size, with the configurations ranked by throughput.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Their kind.
    pub kind: Kind,
    /// Whether they are small.
    pub small: bool,
    /// The points that every configuration in `standings` was measured at.
    pub points: Vec<PointKey>,
    /// The configurations that were measured in the group, the best first.
    pub standings: Vec<Standing>,
}

impl Group {
    /// The best, and those that are equivalent to it.
    fn candidates(&self) -> impl Iterator<Item = &Standing> {
        self.standings
            .iter()
            .enumerate()
            .filter(|(rank, standing)| *rank == 0 || standing.is(Finding::Equivalent))
            .map(|(_, standing)| standing)
    }

    /// What to use: the one verdict on a group, which sentences and tables are written from. To be used
    /// are the best and what is equivalent to it, unless another of these does more I/O for each percent of
    /// CPU by over the margin; where the best is not told from another, nothing is.
    #[must_use]
    pub fn advice(&self, margin: Margin) -> Advice<'_> {
        let Some(best) = self.standings.first() else { return Advice::NotMeasured };
        let undecided: Vec<&Standing> =
            self.standings.iter().filter(|standing| standing.is(Finding::Undecided)).collect();
        if !undecided.is_empty() {
            return Advice::NotTold { best, others: undecided };
        }
        let efficiency = |standing: &Standing| standing.iops_per_cpu_percent.unwrap_or(0.0);
        let most = self.candidates().map(efficiency).fold(0.0, f64::max);
        let least = most * margin.span().low;
        Advice::Use(self.candidates().filter(|standing| efficiency(standing) >= least).collect())
    }
}

/// What a group's repetitions say is to be used.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice<'g> {
    /// Any of these, the fastest first.
    Use(Vec<&'g Standing>),
    /// The fastest is not told from these others: more repetitions would tell.
    NotTold {
        /// The fastest.
        best: &'g Standing,
        /// Those it may be no faster than.
        others: Vec<&'g Standing>,
    },
    /// No point of the group was measured in any configuration.
    NotMeasured,
}

impl<'g> Advice<'g> {
    /// Those to use; empty where nothing is advised.
    #[must_use]
    pub fn choices(self) -> Vec<&'g Standing> {
        match self {
            Self::Use(choices) => choices,
            Self::NotTold { .. } | Self::NotMeasured => Vec::new(),
        }
    }
}

impl Standing {
    /// Whether this is what was found against the best.
    #[must_use]
    pub fn is(&self, finding: Finding) -> bool {
        self.against_best.is_some_and(|judged| judged.finding == finding)
    }
}

/// Ranks the configurations in each group.
pub(super) fn rank(measurements: &Measurements, margin: Margin, seeds: &mut SeedSequence) -> Vec<Group> {
    let mut keys: BTreeMap<(Kind, bool), Vec<PointKey>> = BTreeMap::new();
    for key in measurements.points.keys() {
        let small = key.block_bytes <= SMALL_MOST_BYTES;
        keys.entry((Kind::from(*key), !small)).or_default().push(*key);
    }
    keys.into_iter()
        .map(|((kind, large), keys)| {
            let (points, standings) = standings(measurements, &keys, margin, seeds.next_seed());
            Group { kind, small: !large, points, standings }
        })
        .collect()
}

fn standings(
    measurements: &Measurements,
    keys: &[PointKey],
    margin: Margin,
    seed: u64,
) -> (Vec<PointKey>, Vec<Standing>) {
    let cell = |key: &PointKey, index: usize| measurements.points.get(key).and_then(|cells| cells.get(index));
    let measured =
        |key: &PointKey, index: usize| cell(key, index).is_some_and(|cell| !cell.figures.is_empty());
    let present: Vec<usize> = (0..measurements.configurations.len())
        .filter(|index| keys.iter().any(|key| measured(key, *index)))
        .collect();
    let common: Vec<PointKey> =
        keys.iter().copied().filter(|key| present.iter().all(|index| measured(key, *index))).collect();
    let mut standings: Vec<Standing> = present
        .into_iter()
        .filter_map(|configuration| {
            let cells: Vec<&Cell> = common.iter().filter_map(|key| cell(key, configuration)).collect();
            let mean =
                |figure: &dyn Fn(&Cell) -> Option<f64>| geometric_mean(cells.iter().map(|cell| figure(cell)));
            Some(Standing {
                configuration,
                // As the ratio to the best is reckoned, where any repetition is whole.
                bytes_per_second: geometric_mean(whole_repetitions(&cells).into_values().map(Some))
                    .or_else(|| mean(&|cell| Some(cell.side.throughput?.mean)))?,
                iops_per_cpu_percent: mean(&|cell| cell.side.iops_per_cpu_percent()),
                against_best: None,
            })
        })
        .collect();
    standings.sort_by(|a, b| b.bytes_per_second.total_cmp(&a.bytes_per_second));
    let by_repetition = |configuration: usize| {
        let cells: Vec<&Cell> = common.iter().filter_map(|key| cell(key, configuration)).collect();
        whole_repetitions(&cells)
    };
    if let Some((best, others)) = standings.split_first_mut() {
        let best = by_repetition(best.configuration);
        let confidence = ranking_confidence(others.len() + 1);
        for other in others {
            let ratio = paired_ratio_at(&best, &by_repetition(other.configuration), confidence, seed);
            other.against_best = ratio.map(|ratio| Judged::new(ratio, margin));
        }
    }
    (common, standings)
}

/// Confidence of the intervals against the best of so many. The best is chosen from the same repetitions
/// that it is then compared in, by its luck among other things, and might have been any of them: each pair
/// shares in [`LEVEL`] (Bonferroni), as in Tukey's comparison of all pairs, so that a whole ranking is wrong
/// about any of them with a probability of at most that. With seven equal configurations and verdicts of
/// 90 % it would be with one of 58 %.
fn ranking_confidence(configurations: usize) -> f64 {
    let pairs = configurations * configurations.saturating_sub(1) / 2;
    1.0 - 2.0 * LEVEL / pairs.max(1) as f64
}

/// The geometric mean over the points of each repetition that was measured at all of them.
fn whole_repetitions(cells: &[&Cell]) -> BTreeMap<u32, f64> {
    let Some(first) = cells.first() else { return BTreeMap::new() };
    first
        .figures
        .keys()
        .filter_map(|number| {
            let values = cells.iter().map(|cell| Metric::Rate.value(cell.figures.get(number)?));
            Some((*number, geometric_mean(values)?))
        })
        .collect()
}

/// None where there is no value, one is missing, or one has no logarithm.
fn geometric_mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logarithms: Option<Vec<f64>> =
        values.map(|value| value.filter(|value| *value > 0.0).map(f64::ln)).collect();
    let logarithms = logarithms.filter(|logarithms| !logarithms.is_empty())?;
    Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()).filter(|mean| mean.is_finite())
}
