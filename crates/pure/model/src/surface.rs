//! Two environments over the throughput surface ([ESX Disk 2003], sections 3.3 and 3.5).

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointRecord};
use virtbench_units::SeedSequence;

use crate::interval::CONFIDENCE;
use crate::kind::LEAST_SAMPLES;
use crate::ratio::{Ratio, paired_ratio};
use crate::side::Repetitions;
pub use crate::side::Side;

/// A point with both its sides.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedPoint {
    /// Which point.
    pub key: PointKey,
    /// The reference, such as the native host.
    pub reference: Side,
    /// What is compared with it, such as a VM.
    pub subject: Side,
    /// Subject's throughput as a share of the reference's.
    pub ratio: Option<Ratio>,
    /// Subject's host CPU per operation as a multiple of the reference's.
    pub cpu_per_io: Option<Ratio>,
}

/// A point of the sorted ratio curve ([ESX Disk 2003], Figure 8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Which point.
    pub key: PointKey,
    /// Its ratio.
    pub ratio: Ratio,
}

/// The ratios of all points in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioSummary {
    /// The lowest ratio.
    pub min: CurvePoint,
    /// The highest ratio.
    pub max: CurvePoint,
    /// Geometric mean over points ([ESX Disk 2003] takes the arithmetic one, with which half and double come to
    /// 1.25). Its interval says how much the mean depends on which points were chosen; points are no
    /// random sample of all loads, so it is no promise for a load that lies outside the grid. None from
    /// fewer than [`LEAST_SAMPLES`].
    pub mean: Ratio,
    /// Points whose interval lies below 1.
    pub slower: usize,
    /// Points whose interval lies above 1.
    pub faster: usize,
    /// Points whose interval contains 1.
    pub undecided: usize,
    /// Points with a ratio but, for want of repetitions, no interval.
    pub without_interval: usize,
}

/// A run's comparison of two environments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Every point that has a record, in the order of its key.
    pub points: Vec<ComparedPoint>,
    /// The points with a ratio, in ascending order of it.
    pub curve: Vec<CurvePoint>,
    /// The curve in short; none without a ratio.
    pub summary: Option<RatioSummary>,
    /// Subject's host CPU per operation as a multiple of the reference's: geometric mean over points.
    pub cpu_per_io: Option<Ratio>,
}

/// Compares the environment named `subject` with the one named `reference`. Records of other
/// environments are passed over; `seed` determines every bootstrap.
#[must_use]
pub fn compare(records: &[PointRecord], reference: &str, subject: &str, seed: u64) -> Comparison {
    let mut sides: BTreeMap<PointKey, [Repetitions<'_>; 2]> = BTreeMap::new();
    for record in records {
        for (index, name) in [reference, subject].into_iter().enumerate() {
            if record.environment == name {
                sides.entry(record.point).or_default()[index].insert(record);
            }
        }
    }
    let mut seeds = SeedSequence::new(seed);
    let points: Vec<ComparedPoint> =
        sides.iter().map(|(key, sides)| compare_point(*key, sides, seeds.next_seed())).collect();
    let curve = sorted_curve(&points);
    let summary = summarise(&curve, seeds.next_seed());
    let costs: Vec<f64> = points.iter().filter_map(|point| Some(point.cpu_per_io?.value)).collect();
    let cpu_per_io = over_points(&costs, seeds.next_seed());
    Comparison { points, curve, summary, cpu_per_io }
}

fn compare_point(key: PointKey, sides: &[Repetitions<'_>; 2], seed: u64) -> ComparedPoint {
    let [reference, subject] = sides;
    let paired = |figure: fn(&virtbench_record::Measured) -> f64| {
        paired_ratio(&reference.figures(figure), &subject.figures(figure), seed)
    };
    ComparedPoint {
        key,
        reference: reference.sum_up(seed),
        subject: subject.sum_up(seed),
        ratio: paired(|m| m.outcome.total.bytes_per_second),
        cpu_per_io: paired(|m| m.host.cpu_percent / m.outcome.total.iops),
    }
}

fn sorted_curve(points: &[ComparedPoint]) -> Vec<CurvePoint> {
    let mut curve: Vec<CurvePoint> =
        points.iter().filter_map(|point| Some(CurvePoint { key: point.key, ratio: point.ratio? })).collect();
    curve.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value).then(a.key.cmp(&b.key)));
    curve
}

fn summarise(curve: &[CurvePoint], seed: u64) -> Option<RatioSummary> {
    let ratios: Vec<f64> = curve.iter().map(|point| point.ratio.value).collect();
    let count = |holds: fn(&Ratio) -> bool| curve.iter().filter(|point| holds(&point.ratio)).count();
    Some(RatioSummary {
        min: *curve.first()?,
        max: *curve.last()?,
        mean: over_points(&ratios, seed)?,
        slower: count(|ratio| ratio.interval.is_some_and(|span| span.high < 1.0)),
        faster: count(|ratio| ratio.interval.is_some_and(|span| span.low > 1.0)),
        undecided: count(|ratio| ratio.excludes_one() == Some(false)),
        without_interval: count(|ratio| ratio.interval.is_none()),
    })
}

/// The ratios of points averaged, in which each counts as a pair.
fn over_points(ratios: &[f64], seed: u64) -> Option<Ratio> {
    let mean = Ratio::average(ratios, CONFIDENCE, seed)?;
    Some(Ratio { interval: mean.interval.filter(|_| mean.pairs >= LEAST_SAMPLES), ..mean })
}

#[cfg(test)]
#[path = "surface_tests.rs"]
mod tests;
