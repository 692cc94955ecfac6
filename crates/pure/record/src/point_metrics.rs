//! What a measurement comes down to when configurations are compared, wherever it comes from.

use crate::host_use::HostUse;
use crate::outcome::LoadOutcome;
use crate::point::{Measured, PointKey};
use crate::table_facts::TableFacts;

/// The figures of one repetition of one point ([ESX Adapters 2006], "Metrics").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointMetrics {
    /// I/O rate, in operations per second.
    pub iops: f64,
    /// Throughput, in bytes per second.
    pub bytes_per_second: f64,
    /// Mean response time, in nanoseconds, where it is known.
    pub latency_ns: Option<f64>,
    /// Host CPU use, in percent of one processor, summed over all of them, where it is known.
    pub cpu_percent: Option<f64>,
}

impl PointMetrics {
    /// Operations per second for each percent of host CPU ([ESX Adapters 2006]); nothing where no use is known.
    #[must_use]
    pub fn iops_per_cpu_percent(&self) -> Option<f64> {
        self.cpu_percent.filter(|percent| *percent > 0.0).map(|percent| self.iops / percent)
    }
}

impl From<&Measured> for PointMetrics {
    fn from(measured: &Measured) -> Self {
        let Measured { outcome: LoadOutcome { total, .. }, host: HostUse { cpu_percent, .. }, .. } = measured;
        Self {
            iops: total.iops,
            bytes_per_second: total.bytes_per_second,
            latency_ns: total.latency_ns.map(|latency| latency.mean),
            cpu_percent: Some(*cpu_percent),
        }
    }
}

/// A row of a table of results: one repetition of one point in one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultRow {
    /// Name of the configuration, such as an adapter's.
    pub configuration: String,
    /// Which point.
    pub point: PointKey,
    /// Which repetition, from 0. Rows of the same number were measured next to each other in time.
    pub repetition: u32,
    /// Its figures.
    pub figures: PointMetrics,
}

/// Results that somebody published or collected, such as [ESX Adapters 2006]'s Tables 2 to 5.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultTable {
    /// What is said of all rows.
    pub facts: TableFacts,
    /// The rows.
    pub rows: Vec<ResultRow>,
    /// Whether response times were worked out from the I/Os outstanding (Little's law) rather than
    /// measured.
    pub latency_derived: bool,
}
