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
//! [search](self); V and F are what computing costs on the subject.
//!
//! The think time with which a model load does as many operations as the application ([ESX Disk 2003], 5.2).
//!
//! The search runs nothing itself:
//!
//! ```text
//! next_probe() -> think time -> the caller runs the load -> observe(think time, rate) -> ... -> None
//! ```
//!
//! A worker's cycle is its think time and everything else, workers / rate in all. What the last run
//! shows of "everything else" gives the next think time; it changes little with it, so that few runs
//! are needed. Where a step would leave what earlier runs have shown to bracket the answer, the middle
//! of the bracket is tried instead.

use serde::Serialize;
use virtbench_record::ModelRuns;

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

/// The result of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Calibration {
    /// A think time whose rate is near enough.
    Found {
        /// The think time, in nanoseconds.
        think_ns: f64,
        /// Its rate, per second.
        per_second: f64,
    },
    /// Even without any think time the load is slower than the application.
    OutOfReach {
        /// The rate it reached.
        most_per_second: f64,
    },
    /// The runs were used up.
    Nearest {
        /// The think time that came nearest, in nanoseconds.
        think_ns: f64,
        /// Its rate, per second.
        per_second: f64,
    },
}

/// The search.
#[derive(Debug, Clone)]
pub struct ThinkSearch {
    workers: f64,
    target: f64,
    tolerance: f64,
    most_runs: usize,
    runs: Vec<(f64, f64)>,
    next_ns: f64,
    result: Option<Calibration>,
}

impl ThinkSearch {
    /// For a load of `workers` that shall do `per_second` operations, within the share `tolerance`, in at
    /// most `most_runs` runs. `response_ns` is what an operation is believed to take; 0 if unknown.
    #[must_use]
    pub fn new(workers: u32, per_second: f64, response_ns: f64, tolerance: f64, most_runs: usize) -> Self {
        let workers = f64::from(workers);
        let next_ns = (workers / per_second * 1e9 - response_ns).max(0.0);
        Self { workers, target: per_second, tolerance, most_runs, runs: Vec::new(), next_ns, result: None }
    }

    /// The think time to try next, in nanoseconds; `None` once the search has ended.
    #[must_use]
    pub fn next_probe(&self) -> Option<f64> {
        self.result.is_none().then_some(self.next_ns)
    }

    /// Takes in what a run with a think time did.
    pub fn observe(&mut self, think_ns: f64, per_second: f64) {
        if self.result.is_some() {
            return;
        }
        self.runs.push((think_ns, per_second));
        let off = |per_second: f64| (per_second / self.target - 1.0).abs();
        if off(per_second) <= self.tolerance {
            self.result = Some(Calibration::Found { think_ns, per_second });
        } else if think_ns <= 0.0 && per_second < self.target {
            self.result = Some(Calibration::OutOfReach { most_per_second: per_second });
        } else if self.runs.len() >= self.most_runs {
            let nearest = self.runs.iter().min_by(|a, b| off(a.1).total_cmp(&off(b.1)));
            self.result = nearest.map(|(think_ns, per_second)| Calibration::Nearest {
                think_ns: *think_ns,
                per_second: *per_second,
            });
        } else {
            self.next_ns = self.step(think_ns, per_second);
        }
    }

    fn step(&self, think_ns: f64, per_second: f64) -> f64 {
        let cycle_ns = |per_second: f64| self.workers / per_second.max(1e-9) * 1e9;
        let wanted = (cycle_ns(self.target) - (cycle_ns(per_second) - think_ns)).max(0.0);
        // A longer think time never makes a load faster.
        let too_fast = self.runs.iter().filter(|(_, rate)| *rate > self.target).map(|(think, _)| *think);
        let too_slow = self.runs.iter().filter(|(_, rate)| *rate < self.target).map(|(think, _)| *think);
        let low = too_fast.fold(0.0, f64::max);
        let high = too_slow.fold(f64::INFINITY, f64::min);
        if low < wanted && wanted < high || (wanted == 0.0 && low == 0.0) || low >= high {
            wanted
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            low * 2.0 + 1e3
        }
    }

    /// What came of it, once it has ended.
    #[must_use]
    pub fn result(&self) -> Option<Calibration> {
        self.result
    }
}

/// A part of the time of one operation ([ESX Disk 2003], Sourced 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// C: computing between operations, user code and system code not told apart.
    Compute,
    /// C: user code.
    User,
    /// C: system code.
    System,
    /// Neither computing nor waiting for the disk: the network, other processes, timers.
    Elsewhere,
    /// V: what virtualization adds to computing.
    Virtualization,
    /// S: system code of the operation itself, and waiting for a processor.
    SystemIo,
    /// L: the operation.
    Disk,
}

impl Part {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "computing (C)",
            Self::User => "user code (C)",
            Self::System => "system code (C)",
            Self::Elsewhere => "waiting elsewhere",
            Self::Virtualization => "virtualization of computing (V)",
            Self::SystemIo => "system code of I/O, ready queue (S)",
            Self::Disk => "disk (L)",
        }
    }
}

/// Where the time of one operation goes, in milliseconds, in the order in which it is spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Breakdown(pub Vec<(Part, f64)>);

impl Breakdown {
    /// All of it, in milliseconds.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.0.iter().map(|(_, ms)| ms).sum()
    }

    /// The parts that take any time.
    pub(super) fn from_parts(parts: impl IntoIterator<Item = (Part, f64)>) -> Self {
        Self(parts.into_iter().filter(|(_, ms)| *ms > 0.0).collect())
    }
}
