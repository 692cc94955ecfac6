//! What runs are compared by, and which direction of it is better.
//!
//! A thing that completed nothing has a value all the same: the worst there is. Left out, it would make a dead disk look like a quick one.

use serde::Serialize;
use virtbench_record::{Better, PointRecord};

use crate::pairwise::Finding;

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

    /// What a record has of it, in its unit: the worst value where nothing was completed, and nothing where it was not measured to
    /// the end.
    #[must_use]
    pub fn value(self, record: &PointRecord) -> Option<f64> {
        let outcome = &record.measured()?.outcome;
        let total = &outcome.total;
        if total.operations == 0 && total.bytes_per_second <= 0.0 {
            return (!outcome.interrupted).then_some(self.worst());
        }
        match self {
            Self::Throughput => Some(total.bytes_per_second),
            Self::MeanLatency => Some(total.latency_ns?.mean),
            Self::P99Latency => Some(total.latency_ns?.p99 as f64),
        }
    }

    /// Its value where nothing was completed.
    #[must_use]
    pub fn worst(self) -> f64 {
        worst(self.better())
    }
}

/// The value of a thing that did nothing: no throughput, a latency without end.
#[must_use]
pub const fn worst(better: Better) -> f64 {
    match better {
        Better::Higher | Better::Neither => 0.0,
        Better::Lower => f64::INFINITY,
    }
}

/// Whether a value is that of a thing that did nothing.
#[must_use]
pub fn is_worst(value: f64, better: Better) -> bool {
    match better {
        Better::Higher => value <= 0.0,
        Better::Lower => value == f64::INFINITY,
        Better::Neither => false,
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
