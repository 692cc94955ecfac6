//! What a study of sides measures: a list of samples for each side and repetition. Table, history, comparison and page are made of it,
//! whatever the study is about.

use serde::{Deserialize, Serialize};

use crate::histogram::TakenHistogram;
use crate::host_use::HostUse;
use crate::plan::Plan;
use crate::point::Record;
use crate::workload::Better;

/// One number that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was measured.
    pub name: String,
    /// Its unit: `B/s`, `1/s`, `ns`, `%`, or another one.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// How much it was.
    pub value: f64,
}

impl Sample {
    /// A number in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self { name: name.into(), unit: unit.to_owned(), better, value }
    }
}

/// How often a time was in each range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeCounts {
    /// What took these times.
    pub name: String,
    /// The upper end of a range, in nanoseconds, and how many were in it; in their order.
    pub counts: Vec<(u64, u64)>,
}

/// What was measured of one side at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplesMeasured {
    /// The numbers.
    pub samples: Vec<Sample>,
    /// Times, where their distribution says more than numbers do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<TimeCounts>,
    /// How long it took with what it needed before, in nanoseconds.
    pub elapsed_ns: u64,
    /// The whole host meanwhile, if it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostUse>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of measuring one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SamplesStatus {
    /// It was measured.
    Measured(Box<SamplesMeasured>),
    /// It failed.
    Failed {
        /// What the user is told.
        why: String,
    },
    /// This host does not have it.
    Unavailable {
        /// What is missing.
        why: String,
    },
}

/// One line of `results.jsonl`: one repetition of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplesRecord {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the side.
    pub side: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// When measuring began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub status: SamplesStatus,
}

impl SamplesRecord {
    /// The measurement, if there is one.
    #[must_use]
    pub fn measured(&self) -> Option<&SamplesMeasured> {
        if let SamplesStatus::Measured(measured) = &self.status { Some(measured) } else { None }
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        if let SamplesStatus::Failed { why } = &self.status { Some(why) } else { None }
    }

    /// What this host lacks for it, if that is why there is nothing.
    #[must_use]
    pub fn unavailable(&self) -> Option<&str> {
        if let SamplesStatus::Unavailable { why } = &self.status { Some(why) } else { None }
    }
}

impl Record for SamplesRecord {
    fn follows(plan: &Plan) -> bool {
        plan.sides().is_some()
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        Vec::new()
    }
}
