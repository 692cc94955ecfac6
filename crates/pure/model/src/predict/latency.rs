//! The latency model ([ESX Disk 2003], section 5): T = C + S + L.
//!
//! Every worker computes for C, issues one operation, and waits for it; S is what is left of its cycle,
//! the system code of the operation and waiting for a processor:
//!
//! ```text
//! T_R = C + S_R + L_R        T_V = (C + V) F + S_V + L_V        M = M_R T_R / T_V
//! ```
//!
//! S and L are measured on both machines by a model load; C is its think time, found by
//! [search](super::calibrate); V and F are what computing costs on the subject.

use virtbench_record::ModelRuns;

use super::breakdown::{Breakdown, Part};
use super::sampling::{SAMPLES, interval};
use crate::interval::Span;

/// Whether figures are rounded on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Never.
    #[default]
    Exact,
    /// As [ESX Disk 2003] prints them: times to a tenth of a millisecond, the ratio to two digits.
    AsPublished,
}

impl Rounding {
    /// A value in steps of `1 / steps`, where it is rounded.
    pub(super) fn to(self, value: f64, steps: f64) -> f64 {
        match self {
            Self::Exact => value,
            Self::AsPublished => (value * steps).round() / steps,
        }
    }
}

/// The time of one operation on one machine, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// C: computing, on the reference's processors.
    pub compute_ms: f64,
    /// V F: what virtualization adds to it.
    pub virtualization_ms: f64,
    /// C F: computing on this machine's processors, less V F.
    pub scaled_compute_ms: f64,
    /// S.
    pub system_ms: f64,
    /// L.
    pub disk_ms: f64,
    /// T: all of it.
    pub total_ms: f64,
}

impl Times {
    /// As a picture shows it (Sourced 9).
    #[must_use]
    pub fn breakdown(&self) -> Breakdown {
        Breakdown::from_parts([
            (Part::Compute, self.scaled_compute_ms),
            (Part::Virtualization, self.virtualization_ms),
            (Part::SystemIo, self.system_ms),
            (Part::Disk, self.disk_ms),
        ])
    }
}

/// What the model says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyPrediction {
    /// On the reference.
    pub reference: Times,
    /// On the subject.
    pub subject: Times,
    /// T_R / T_V.
    pub ratio: f64,
}

/// Applies the model to what a model load did on both machines.
#[must_use]
pub fn latency_model(runs: &ModelRuns, rounding: Rounding) -> LatencyPrediction {
    let round = |ms| rounding.to(ms, 10.0);
    let times = |per_second: f64, response_ms: f64, overhead: f64, factor: f64| {
        let cycle_ms = round(f64::from(runs.workers) / per_second * 1e3);
        let system_ms = round((cycle_ms - runs.think_ms - response_ms).max(0.0));
        let virtualization_ms = round(overhead * runs.think_ms) * factor;
        let scaled_compute_ms = runs.think_ms * factor;
        Times {
            compute_ms: runs.think_ms,
            virtualization_ms,
            scaled_compute_ms,
            system_ms,
            disk_ms: response_ms,
            total_ms: round(scaled_compute_ms + virtualization_ms + system_ms + response_ms),
        }
    };
    let reference = times(runs.reference.io_per_second, runs.reference.response_ms, 0.0, 1.0);
    let compute = runs.compute;
    let subject = times(
        runs.subject.io_per_second,
        runs.subject.response_ms,
        compute.overhead_percent / 100.0,
        compute.time_factor,
    );
    LatencyPrediction { reference, subject, ratio: rounding.to(reference.total_ms / subject.total_ms, 100.0) }
}

/// The ratio's 95 % interval where each measured figure is known within `half_width` (a share, 95 %).
#[must_use]
pub fn latency_interval(runs: &ModelRuns, half_width: f64, seed: u64) -> Option<Span> {
    interval(SAMPLES, seed, |sample| {
        let mut drawn = runs.clone();
        let mut off = || (sample.normal() * half_width / 1.96).exp();
        drawn.reference.io_per_second *= off();
        drawn.reference.response_ms *= off();
        drawn.subject.io_per_second *= off();
        drawn.subject.response_ms *= off();
        Some(latency_model(&drawn, Rounding::Exact).ratio)
    })
}

/// How far a prediction was off, as a share of the truth; the sign is dropped, as in the paper.
#[must_use]
pub fn error(predicted: f64, actual: f64) -> f64 {
    (predicted - actual).abs() / actual
}
