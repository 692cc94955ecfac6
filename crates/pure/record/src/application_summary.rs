//! What a program reads of an application that was compared on several sides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::application::Quantity;
use crate::summary::{Conclusion, Estimated};

/// One side of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationSideNumbers {
    /// Its name.
    pub configuration: String,
    /// What is known of it, each with its interval where there are repetitions for one.
    pub known: BTreeMap<Quantity, Estimated>,
    /// By how many percent CPI times path length misses the cycles, where that is too much.
    pub mismatch_percent: Option<f64>,
}

/// A side against the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationRatios {
    /// Which side.
    pub configuration: String,
    /// The side that it is compared with.
    pub reference: String,
    /// How many times the reference's each quantity is.
    pub ratios: BTreeMap<Quantity, Estimated>,
    /// The part of the further cycles that is slower instructions, in percent; the rest is more of them.
    pub slower_percent: Option<f64>,
}

/// The figures of an application on several sides, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The sides, the reference first.
    pub sides: Vec<ApplicationSideNumbers>,
    /// All but the first against it.
    pub ratios: Vec<ApplicationRatios>,
}
