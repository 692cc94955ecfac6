//! Configurations compared in pairs, point by point ([ESX Adapters 2006]: two adapters under the same load).
//!
//! Both sides of a pair are measured at the same point, so they move blocks of one size: the ratio of
//! their throughput is the ratio of their I/O rates, and the ratio of KB/s per %CPU is that of I/O per
//! %CPU. Three quantities remain to be compared, [`Metric`].

mod group;
mod verdict;

use virtbench_record::PointKey;
use virtbench_units::SeedSequence;

pub use group::{Access, Advice, Group, Kind, SMALL_MOST_BYTES, Standing};
pub use verdict::{Cell, Finding, Judged, LEVEL, Margin, Measurements, Metric, VERDICT_CONFIDENCE};

use crate::ratio::paired_ratio_at;

/// Two configurations at one point. Ratios are those of the pair's first to its second.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPoint {
    /// Which point.
    pub key: PointKey,
    /// What was compared, in the order of [`Metric::ALL`]; none where one of the two lacks it.
    judged: [Option<Judged>; 3],
}

impl PairPoint {
    /// The verdict on one quantity.
    #[must_use]
    pub fn judged(&self, metric: Metric) -> Option<&Judged> {
        self.judged[metric as usize].as_ref()
    }
}

/// Two configurations, compared at every point.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Index of the first.
    pub first: usize,
    /// Index of the second.
    pub second: usize,
    /// The points that were measured on both sides.
    pub points: Vec<PairPoint>,
}

/// How many points came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// The first is higher by more than the margin.
    pub higher: usize,
    /// The first is lower by more than the margin.
    pub lower: usize,
    /// Equivalent within the margin.
    pub equivalent: usize,
    /// Neither could be shown.
    pub undecided: usize,
    /// Of all these, points whose spread is not known.
    pub without_spread: usize,
}

impl Tally {
    /// Points compared.
    #[must_use]
    pub fn points(&self) -> usize {
        self.higher + self.lower + self.equivalent + self.undecided
    }

    /// The other way round.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { higher: self.lower, lower: self.higher, ..self }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            higher: self.higher + other.higher,
            lower: self.lower + other.lower,
            equivalent: self.equivalent + other.equivalent,
            undecided: self.undecided + other.undecided,
            without_spread: self.without_spread + other.without_spread,
        }
    }

    fn count(&mut self, judged: &Judged) {
        *match judged.finding {
            Finding::Higher => &mut self.higher,
            Finding::Lower => &mut self.lower,
            Finding::Equivalent => &mut self.equivalent,
            Finding::Undecided => &mut self.undecided,
        } += 1;
        self.without_spread += usize::from(!judged.has_spread());
    }
}

impl Pair {
    /// How the points came out.
    #[must_use]
    pub fn tally(&self, metric: Metric) -> Tally {
        let mut tally = Tally::default();
        self.points.iter().filter_map(|point| point.judged(metric)).for_each(|judged| tally.count(judged));
        tally
    }
}

/// Everything that follows from the measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// What was compared.
    pub measurements: Measurements,
    /// What counts as the same.
    pub margin: Margin,
    /// Every pair, the earlier configuration first.
    pub pairs: Vec<Pair>,
    /// Every kind of I/O, small and large, with all configurations ranked.
    pub groups: Vec<Group>,
}

impl Analysis {
    /// A configuration's name; empty for an index beyond them.
    #[must_use]
    pub fn name(&self, configuration: usize) -> &str {
        self.measurements.configurations.get(configuration).map_or("", String::as_str)
    }

    /// What to use for a kind of I/O ([`Group::advice`]).
    #[must_use]
    pub fn advice<'g>(&self, group: &'g Group) -> Advice<'g> {
        group.advice(self.margin)
    }

    /// How all points of all pairs came out. Which of two is the higher has no meaning in the sum.
    #[must_use]
    pub fn tally(&self, metric: Metric) -> Tally {
        self.pairs.iter().map(|pair| pair.tally(metric)).fold(Tally::default(), Tally::plus)
    }

    /// The least and the most I/O per %CPU of a configuration over the points that `holds` is true of.
    #[must_use]
    pub fn efficiency_range(
        &self,
        configuration: usize,
        holds: impl Fn(PointKey) -> bool,
    ) -> Option<crate::Span> {
        let values = self.measurements.points.iter().filter(|(key, _)| holds(**key));
        let values: Vec<f64> =
            values.filter_map(|(_, cells)| cells.get(configuration)?.side.iops_per_cpu_percent()).collect();
        (!values.is_empty()).then(|| crate::Span {
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Compares every configuration with every other. `seed` determines every bootstrap.
#[must_use]
pub fn analyse(measurements: Measurements, margin: Margin, seed: u64) -> Analysis {
    let mut seeds = SeedSequence::new(seed);
    let number = measurements.configurations.len();
    let pairs = (0..number)
        .flat_map(|first| (first + 1..number).map(move |second| (first, second)))
        .map(|(first, second)| compare_pair(&measurements, [first, second], margin, &mut seeds))
        .collect();
    let groups = group::rank(&measurements, margin, &mut seeds);
    Analysis { measurements, margin, pairs, groups }
}

fn compare_pair(
    measurements: &Measurements,
    [first, second]: [usize; 2],
    margin: Margin,
    seeds: &mut SeedSequence,
) -> Pair {
    let mut compare = |cells: &[Cell]| {
        let seed = seeds.next_seed();
        Metric::ALL.map(|metric| {
            let [above, below] = [first, second].map(|index| metric.by_repetition(&cells[index]));
            let ratio = paired_ratio_at(&below, &above, VERDICT_CONFIDENCE, seed)?;
            Some(Judged::new(ratio, margin))
        })
    };
    let points = measurements
        .points
        .iter()
        .map(|(key, cells)| PairPoint { key: *key, judged: compare(cells) })
        .filter(|point| point.judged.iter().any(Option::is_some))
        .collect();
    Pair { first, second, points }
}

/// A configuration and the groups it is to be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its index.
    pub configuration: usize,
    /// Indices of the groups.
    pub groups: Vec<usize>,
}

/// A few configurations that cover all groups of which [`Group::advice`](Group::advice) tells what to use, each by
/// one of its choices: the one that is a choice most often is taken first, of those that are so equally
/// often the earlier. They come in the order of the groups.
#[must_use]
pub fn recommend(analysis: &Analysis) -> Vec<Use> {
    let told = |index: &usize| matches!(analysis.advice(&analysis.groups[*index]), Advice::Use(_));
    let mut left: Vec<usize> = (0..analysis.groups.len()).filter(told).collect();
    let mut uses = Vec::new();
    while !left.is_empty() {
        let good = |configuration: usize, index: &usize| {
            let choices = analysis.advice(&analysis.groups[*index]).choices();
            choices.iter().any(|standing| standing.configuration == configuration)
        };
        let count = |configuration: usize| left.iter().filter(|index| good(configuration, index)).count();
        let Some(configuration) = (0..analysis.measurements.configurations.len())
            .rev()
            .max_by_key(|configuration| count(*configuration))
        else {
            break;
        };
        let (groups, rest): (Vec<usize>, Vec<usize>) =
            left.iter().partition(|index| good(configuration, index));
        if groups.is_empty() {
            break;
        }
        uses.push(Use { configuration, groups });
        left = rest;
    }
    uses.sort_by_key(|item| item.groups.first().copied());
    uses
}

#[cfg(test)]
#[path = "pairwise_tests.rs"]
mod tests;
