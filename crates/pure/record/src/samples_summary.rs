//! What a program reads of a study of sides.

use serde::{Deserialize, Serialize};

use crate::summary::{Conclusion, Estimated};
use crate::workload::Better;

/// One number of a side, over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleNumbers {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// How much it is; null where nothing was measured.
    pub value: Option<Estimated>,
    /// How many times the first side's it is; null for that side.
    pub ratio: Option<Estimated>,
}

/// A time that is common among others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimePeak {
    /// The time, in nanoseconds.
    pub at_ns: u64,
    /// The part of all times that is around it, 0 to 1.
    pub share: f64,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplesSideNumbers {
    /// Its name.
    pub name: String,
    /// What was measured of it.
    pub samples: Vec<SampleNumbers>,
    /// Times that are common, where there are several.
    pub peaks: Vec<TimePeak>,
    /// Repetitions that failed, and why.
    pub failures: Vec<String>,
    /// What this host lacks for it; null where it has it.
    pub unavailable: Option<String>,
}

/// The figures of a study of sides, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplesSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The sides, that one first which others are compared with.
    pub sides: Vec<SamplesSideNumbers>,
}
