//! How an application will do elsewhere, from what it does here ([ESX Disk 2003], sections 4 and 5).
//!
//! Six methods, each for what is known:
//!
//! - [`ratio`]: the subject's throughput over the reference's in the matching part of a measured
//!   surface. Right where the application waits for its disk and for nothing else.
//! - [`latency`]: T = C + S + L of a model load that was run on both machines. Right where every
//!   worker waits for each of its operations, and the disk is not near saturation.
//! - `scaling`: user code, kernel code, copying and waiting, each times what it was measured to take longer
//!   on the subject. Right where the application works through the page cache.
//! - `crossings`: user code, system calls, page faults and what else an operation asks for, each times what it costs on the
//!   subject. Right where the subject computes as fast and its kernel is dear to enter.
//! - `storage`: what it waits for its disk, times how many times as long the disk's operations take. Right from one storage to another
//!   on the same platform.
//! - [`queueing`]: a closed network of waiting elsewhere, processors and disk. Where operations
//!   overlap or a station is near saturation the sum of latencies no longer holds, because latencies
//!   then depend on the rate that is to be predicted.
//!
//! [`predict`] chooses, says why, and gives an interval from what is known of its inputs' errors.

mod advise;
mod choose;
mod crossings;
pub mod latency;
pub mod queueing;
pub mod ratio;
mod sampling;
mod scaling;
mod similar_references;
mod storage;
pub mod trials;

use serde::Serialize;
use thiserror::Error;
use virtbench_record::{Capacity, Costs, ModelRuns, Profile};

use crate::interval::Span;
use crate::surface::Comparison;

pub use choose::predict;
pub use latency::{Breakdown, Part, Rounding};
pub use ratio::Beyond;
pub use similar_references::kernel_work;
pub use storage::StoragePair;

/// Which of the six.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionMethod {
    /// [ESX Disk 2003], section 4.
    Ratio,
    /// [ESX Disk 2003], section 5.
    Latency,
    /// [ESX Disk 2003], section 5, with the parts of computing told apart.
    Scaling,
    /// A sum over what an operation asks of the kernel.
    Crossings,
    /// What is waited for, times what the disk's operations take elsewhere.
    Storage,
    /// A closed queueing network.
    Queueing,
}

impl PredictionMethod {
    /// Every method.
    const ALL: [Self; 6] =
        [Self::Ratio, Self::Latency, Self::Scaling, Self::Crossings, Self::Storage, Self::Queueing];

    /// The method of this name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Its name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Latency => "latency",
            Self::Scaling => "scaling",
            Self::Crossings => "crossings",
            Self::Storage => "storage",
            Self::Queueing => "queueing",
        }
    }
}

/// What computing costs on the subject against the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComputeCost {
    /// How much longer user code takes, as a share: 0.05 is 5 %.
    pub user_overhead: f64,
    /// The same of kernel code.
    pub system_overhead: f64,
    /// Time of the same computation on the subject's processors as a multiple of the reference's: F.
    pub time_factor: f64,
}

/// A surface measured on both sides, and how.
#[derive(Debug, Clone, Copy)]
pub struct Surface<'a> {
    /// Reference and subject at every point.
    pub comparison: &'a Comparison,
    /// I/Os that were outstanding at each point, all workers together.
    pub outstanding: u32,
}

/// What a prediction is made from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The application on the reference.
    pub profile: &'a Profile,
    /// A surface, if there is one.
    pub surface: Option<Surface<'a>>,
    /// What a model load did on both machines, if it was run.
    pub runs: Option<&'a ModelRuns>,
    /// What pieces of work cost on both machines, if that was measured.
    pub costs: Option<&'a Costs>,
    /// How fast both storages are, where that is all that differs.
    pub storages: Option<StoragePair<'a>>,
    /// What computing costs on the subject; nothing where that was not measured.
    pub compute: Option<ComputeCost>,
    /// Processors of the subject, if known.
    pub subject_processors: Option<u32>,
    /// The method asked for; none leaves the choice to [`predict`].
    pub method: Option<PredictionMethod>,
    /// Whether to round where the paper does.
    pub rounding: Rounding,
    /// Seed of every random choice.
    pub seed: u64,
}

/// What would change a prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// What is changed, in words.
    pub change: String,
    /// The capacity that would then be predicted.
    pub capacity: f64,
}

/// A prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// How it was made.
    pub method: PredictionMethod,
    /// Why this method was chosen.
    pub why: String,
    /// The application's capacity on the reference.
    pub reference: Capacity,
    /// Subject's capacity as a share of the reference's.
    pub ratio: f64,
    /// Its 95 % interval, from what is known of the inputs' errors; none where nothing is.
    #[serde(rename = "ratio_interval")]
    pub interval: Option<Span>,
    /// Draws of the ratio from what is known of the inputs' errors, ascending, where the method keeps them.
    #[serde(skip)]
    pub draws: Vec<f64>,
    /// Time of an operation (of a second's work, by the scaling method) on the reference and on the subject,
    /// where it could be told.
    pub breakdown: Option<[Breakdown; 2]>,
    /// What limits the application on the subject, in words.
    pub bottleneck: String,
    /// What would change that, the most helpful first.
    pub what_if: Vec<WhatIf>,
    /// Where the profile lies outside what was measured.
    #[serde(rename = "extrapolated")]
    pub beyond: Vec<Beyond>,
    /// What keeps a careful reader from taking this for more than it is.
    pub cautions: Vec<String>,
    /// Whether it was rounded as the paper does, the capacity to a whole number.
    #[serde(skip)]
    pub rounding: Rounding,
}

impl Prediction {
    /// The capacity predicted.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.rounding.to(self.reference.value * self.ratio, 1.0)
    }

    /// Its interval.
    #[must_use]
    pub fn capacity_interval(&self) -> Option<Span> {
        self.interval.map(|span| span.map(|ratio| ratio * self.reference.value))
    }

    /// The interval that is to hold the truth with this confidence (a share), where draws were kept.
    #[must_use]
    pub fn capacity_interval_at(&self, confidence: f64) -> Option<Span> {
        sampling::span(&self.draws, confidence).map(|span| span.map(|ratio| ratio * self.reference.value))
    }
}

/// Why there is no prediction.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum PredictError {
    /// Something is needed that is not there.
    #[error("the {method} method needs {what}")]
    Needs {
        method: &'static str,
        /// What it needs, and how to get it.
        what: &'static str,
    },
    /// There is nothing to predict from.
    #[error("nothing to predict from: give a surface (`surface`) or the results of a model load (`model`)")]
    Nothing,
    /// The surface has no point with both sides.
    #[error("the surface has no point that was measured on both sides")]
    EmptySurface,
    /// The reference cannot be as fast as the application is.
    #[error(
        "the profile's {rate:.0} I/O per second are more than the {most:.0} that the reference's surface reaches for \
         such I/O: the application does not reach this disk (a cache?), or the surface is another disk's; `method` \
         ratio predicts all the same"
    )]
    Inconsistent {
        /// The profile's rate.
        rate: f64,
        /// What the surface says.
        most: f64,
    },
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
