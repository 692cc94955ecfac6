//! What is compared of two configurations.

use std::collections::BTreeMap;

use virtbench_record::PointMetrics;

use super::measurements::Cell;

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
