//! One environment at one point: its repetitions summed up.

use std::collections::BTreeMap;

use virtbench_record::{Measured, PointMetrics, PointRecord, PointStatus};

use crate::interval::{Estimate, median};
use crate::kind::FigureKind;

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
