//! Two environments over the throughput surface ([ESX Disk 2003], sections 3.3 and 3.5), and one of them at one point.

use std::collections::BTreeMap;

use virtbench_record::{Measured, PointKey, PointMetrics, PointRecord, PointStatus};
use virtbench_units::SeedSequence;

use crate::interval::{CONFIDENCE, Estimate, FigureKind, LEAST_SAMPLES, median};
use crate::ratio::{Ratio, paired_ratio};

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

/// What one environment did at one point. PointMetrics are means over repetitions; a point that was never
/// measured has none, and `unavailable` may say why.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Repetitions measured.
    pub repetitions: usize,
    /// Throughput, in bytes per second.
    pub throughput: Option<Estimate>,
    /// I/O rate, in operations per second.
    pub iops: Option<Estimate>,
    /// Mean latency of all operations of all repetitions, in nanoseconds.
    pub latency_ns: Option<f64>,
    /// 99th percentile of the latencies, in nanoseconds: the median of the repetitions', where a mean of
    /// percentiles would be nobody's.
    pub p99_ns: Option<f64>,
    /// Host CPU use, in percent of one processor, summed over all of them ([ESX Adapters 2006]).
    pub cpu_percent: Option<Estimate>,
    /// Why repetitions could not be measured, each reason once.
    pub unavailable: Vec<String>,
    /// Operations that failed, in all repetitions.
    pub errors: u64,
    /// Repetitions in which the measuring machine's clock must not be trusted.
    pub suspect_clocks: usize,
    /// Repetitions that were stopped before their time.
    pub interrupted: usize,
    /// Repetitions that moved nothing: no ratio can have them.
    pub stalled: usize,
}

impl Side {
    /// Operations per second for each percent of host CPU ([ESX Adapters 2006]). `None` where nothing was
    /// measured or the CPU use is zero, which would make it infinite.
    #[must_use]
    pub fn iops_per_cpu_percent(&self) -> Option<f64> {
        self.per_cpu_percent(self.iops)
    }

    /// Bytes per second for each percent of host CPU ([ESX Adapters 2006]), under the same conditions.
    #[must_use]
    pub fn bytes_per_second_per_cpu_percent(&self) -> Option<f64> {
        self.per_cpu_percent(self.throughput)
    }

    /// What repetitions whose figures alone are known come to.
    pub(crate) fn of_figures(figures: &BTreeMap<u32, PointMetrics>, seed: u64) -> Self {
        let estimate = |figure: fn(&PointMetrics) -> Option<f64>| {
            FigureKind::Positive.estimate(&figures.values().filter_map(figure).collect::<Vec<_>>(), seed)
        };
        Self {
            repetitions: figures.len(),
            stalled: figures.values().filter(|figures| figures.bytes_per_second <= 0.0).count(),
            throughput: estimate(|figures| Some(figures.bytes_per_second)),
            iops: estimate(|figures| Some(figures.iops)),
            latency_ns: estimate(|figures| figures.latency_ns).map(|estimate| estimate.mean),
            cpu_percent: estimate(|figures| figures.cpu_percent),
            ..Self::default()
        }
    }

    fn per_cpu_percent(&self, figure: Option<Estimate>) -> Option<f64> {
        let cpu_percent = self.cpu_percent?.mean;
        (cpu_percent > 0.0).then_some(figure?.mean / cpu_percent)
    }
}

/// The records of one environment at one point, by repetition. Where a repetition was recorded
/// twice, as a resumed run may do, the later record counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repetitions<'a>(BTreeMap<u32, &'a PointRecord>);

impl<'a> Repetitions<'a> {
    pub(crate) fn insert(&mut self, record: &'a PointRecord) {
        self.0.insert(record.repetition, record);
    }

    fn measured(&self) -> impl Iterator<Item = (u32, &'a Measured)> {
        self.0.iter().filter_map(|(repetition, record)| Some((*repetition, record.measured()?)))
    }

    /// A figure of each measured repetition.
    pub(crate) fn figures<T>(&self, figure: impl Fn(&Measured) -> T) -> BTreeMap<u32, T> {
        self.measured().map(|(repetition, measured)| (repetition, figure(measured))).collect()
    }

    pub(crate) fn sum_up(&self, seed: u64) -> Side {
        let count = |counts: fn(&Measured) -> bool| self.measured().filter(|(_, m)| counts(m)).count();
        Side {
            latency_ns: self.latency_ns(),
            p99_ns: median(self.measured().filter_map(|(_, m)| Some(m.outcome.total.latency_ns?.p99 as f64))),
            unavailable: self.reasons(),
            errors: self.measured().map(|(_, m)| m.outcome.errors).fold(0, u64::saturating_add),
            suspect_clocks: count(|m| m.clock.as_ref().is_some_and(virtbench_record::ClockCheck::is_suspect)),
            interrupted: count(|m| m.outcome.interrupted),
            ..Side::of_figures(&self.figures(|m| PointMetrics::from(m)), seed)
        }
    }

    /// Weighted by operations: every operation counts alike.
    fn latency_ns(&self) -> Option<f64> {
        let mut operations = 0.0;
        let mut sum_ns = 0.0;
        for (_, measured) in self.measured() {
            let total = &measured.outcome.total;
            if let Some(latency) = total.latency_ns {
                operations += total.operations as f64;
                sum_ns += latency.mean * total.operations as f64;
            }
        }
        (operations > 0.0).then_some(sum_ns / operations)
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for record in self.0.values() {
            if let PointStatus::Unavailable { why } = &record.status
                && !reasons.contains(why)
            {
                reasons.push(why.clone());
            }
        }
        reasons
    }
}

#[cfg(test)]
#[path = "surface_tests.rs"]
mod tests;
