//! Whether two configurations differ by more than a margin, are equivalent within it, or neither.
//!
//! "Not shown to differ" is not "equal": two noisy runs never differ with confidence. Equivalence is
//! therefore tested for itself, by two one-sided tests (D. J. Schuirmann, "A Comparison of the Two
//! One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average
//! Bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987): at the level
//! [`LEVEL`] they both succeed exactly where the interval of confidence 1 - 2 x [`LEVEL`] lies inside
//! the margin. The same interval lies wholly beyond one end of the margin exactly where a one-sided
//! test of that level shows a difference of more than the margin. So one interval gives every
//! verdict, and each is wrong with a probability of at most [`LEVEL`].
//!
//! The margin is one of ratios: 5 % means 1/1.05 to 1.05, so that a verdict does not depend on which
//! of the two is named first.
//!
//! Levels hold for each verdict by itself. They are not adjusted for the number of points and pairs:
//! a reader asks about his own kind of I/O, not whether any of hundreds differs, and an adjustment
//! (Holm) would make the verdict on one point depend on how many others were measured. Of a hundred
//! verdicts some five may thus be wrong, which [`super::Tally`] lets a report say. A ranking is one
//! statement on all its configurations, and is adjusted ([`super::Standing::against_best`]).

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointMetrics, PointRecord, ResultRow};
use virtbench_units::SeedSequence;

use crate::interval::Span;
use crate::ratio::Ratio;
use crate::surface::{Repetitions, Side};

/// The most probability with which a verdict given with confidence is wrong.
pub const LEVEL: f64 = 0.05;

/// Confidence of the intervals that verdicts are read from.
pub const VERDICT_CONFIDENCE: f64 = 1.0 - 2.0 * LEVEL;

/// The largest margin: beyond twice as much nobody would say equivalent.
const MARGIN_MOST: f64 = 1.0;

/// How much more counts as the same, as a share: 0.05 is 5 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin(f64);

impl Margin {
    /// A margin of this share, above 0 and at most 1; nothing for any other.
    #[must_use]
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= MARGIN_MOST).then_some(Self(share))
    }

    /// The share.
    #[must_use]
    pub fn share(self) -> f64 {
        self.0
    }

    /// What can be said of a ratio that lies in `span`.
    #[must_use]
    pub fn finding(self, span: Span) -> Finding {
        let inside = self.span();
        if span.low > inside.high {
            Finding::Higher
        } else if span.high < inside.low {
            Finding::Lower
        } else if inside.contains(span.low) && inside.contains(span.high) {
            Finding::Equivalent
        } else {
            Finding::Undecided
        }
    }

    /// The ratios that are inside.
    #[must_use]
    pub fn span(self) -> Span {
        Span { low: 1.0 / (1.0 + self.0), high: 1.0 + self.0 }
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self(0.05)
    }
}

/// What can be said of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Higher by more than the margin.
    Higher,
    /// Lower by more than the margin.
    Lower,
    /// Within the margin.
    Equivalent,
    /// The interval reaches across an end of the margin: more repetitions would tell.
    Undecided,
}

impl Finding {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        }
    }

    /// Of the reciprocal.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Higher => Self::Lower,
            Self::Lower => Self::Higher,
            same => same,
        }
    }
}

/// A ratio and what can be said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The ratio, with an interval of [`VERDICT_CONFIDENCE`], or wider in a ranking.
    pub ratio: Ratio,
    /// What can be said of it. Without an interval it is read from the value alone: nothing is known
    /// of the spread, and no confidence goes with it.
    pub finding: Finding,
}

impl Judged {
    /// Judges a ratio, whose interval must be of [`VERDICT_CONFIDENCE`] at least.
    #[must_use]
    pub fn new(ratio: Ratio, margin: Margin) -> Self {
        let span = ratio.interval.unwrap_or(Span { low: ratio.value, high: ratio.value });
        Self { ratio, finding: margin.finding(span) }
    }

    /// Whether the spread is known, so that the finding comes with confidence.
    #[must_use]
    pub fn has_spread(&self) -> bool {
        self.ratio.interval.is_some()
    }

    /// The other way round.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let reciprocal = |span: Span| Span { low: 1.0 / span.high, high: 1.0 / span.low };
        Self {
            ratio: Ratio {
                value: 1.0 / self.ratio.value,
                interval: self.ratio.interval.map(reciprocal),
                ..self.ratio
            },
            finding: self.finding.swapped(),
        }
    }
}

/// One configuration at one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Its repetitions summed up.
    pub side: Side,
    /// Each measured repetition by its number.
    pub figures: BTreeMap<u32, PointMetrics>,
}

/// What there is to compare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurements {
    /// Names of the configurations.
    pub configurations: Vec<String>,
    /// For each point a cell of each configuration, in their order.
    pub points: BTreeMap<PointKey, Vec<Cell>>,
}

impl Measurements {
    /// The records of a run. Configurations come in the order of `planned`, then as they are met.
    /// Where a repetition was recorded twice, the later record counts.
    #[must_use]
    pub fn from_records(records: &[PointRecord], planned: &[String], seed: u64) -> Self {
        let recorded = records.iter().map(|record| record.environment.as_str());
        let names = names(planned.iter().map(String::as_str).chain(recorded));
        let mut grouped: BTreeMap<PointKey, Vec<Repetitions<'_>>> = BTreeMap::new();
        for record in records {
            let cells =
                grouped.entry(record.point).or_insert_with(|| vec![Repetitions::default(); names.len()]);
            if let Some(index) = names.iter().position(|name| *name == record.environment) {
                cells[index].insert(record);
            }
        }
        Self::of_cells(names, grouped, seed, |repetitions, seed| Cell {
            side: repetitions.sum_up(seed),
            figures: repetitions.figures(|measured| PointMetrics::from(measured)),
        })
    }

    /// The rows of a table. Configurations come as they are met; of a row that is given twice the
    /// later counts.
    #[must_use]
    pub fn from_rows(rows: &[ResultRow], seed: u64) -> Self {
        let names = names(rows.iter().map(|row| row.configuration.as_str()));
        let mut grouped: BTreeMap<PointKey, Vec<BTreeMap<u32, PointMetrics>>> = BTreeMap::new();
        for row in rows {
            let cells = grouped.entry(row.point).or_insert_with(|| vec![BTreeMap::new(); names.len()]);
            if let Some(index) = names.iter().position(|name| *name == row.configuration) {
                cells[index].insert(row.repetition, row.figures);
            }
        }
        Self::of_cells(names, grouped, seed, |figures, seed| Cell {
            side: Side::of_figures(&figures, seed),
            figures,
        })
    }

    fn of_cells<T>(
        configurations: Vec<String>,
        grouped: BTreeMap<PointKey, Vec<T>>,
        seed: u64,
        cell: impl Fn(T, u64) -> Cell,
    ) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let points = grouped
            .into_iter()
            .map(|(key, cells)| {
                (key, cells.into_iter().map(|repetitions| cell(repetitions, seeds.next_seed())).collect())
            })
            .collect();
        Self { configurations, points }
    }
}

/// Each name once.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Throughput, and with it the I/O rate. More is better.
    Rate,
    /// I/O per %CPU, and with it KB/s per %CPU. More is better.
    Efficiency,
    /// Mean response time. Less is better.
    ResponseTime,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rate, Self::Efficiency, Self::ResponseTime];

    /// The figure of one repetition. Only its ratio to another of the same point has a meaning that
    /// does not depend on the unit.
    #[must_use]
    pub fn value(self, figures: &PointMetrics) -> Option<f64> {
        match self {
            Self::Rate => Some(figures.bytes_per_second),
            Self::Efficiency => figures.iops_per_cpu_percent(),
            Self::ResponseTime => figures.latency_ns,
        }
    }

    /// The figure of every repetition that has it.
    pub(super) fn by_repetition(self, cell: &Cell) -> BTreeMap<u32, f64> {
        cell.figures.iter().filter_map(|(number, figures)| Some((*number, self.value(figures)?))).collect()
    }
}
