//! What was measured of an appliance under a client of the user's: a line for each measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::{ApplianceFacts, PathCost};
use crate::histogram::TakenHistogram;
use crate::host_use::HostUse;
use crate::plan::Plan;
use crate::point::Record;

/// One that ran beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighbourMeasured {
    /// How often its client ended meanwhile.
    pub runs: u32,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
}

/// Another tier of the application as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierMeasured {
    /// The name by which it is reached.
    pub name: String,
    /// What the path from the appliance that the client loads to this one costs.
    pub path: PathCost,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
}

/// What was seen of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationMeasured {
    /// Each metric's value, by its name.
    pub values: BTreeMap<String, f64>,
    /// How long the client took, in nanoseconds.
    pub elapsed_ns: u64,
    /// The end of what the client printed.
    pub output: String,
    /// The appliance as it ran, with what the path to it costs.
    pub appliance: ApplianceFacts,
    /// The whole host while the client ran.
    pub host: HostUse,
    /// Further tiers of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierMeasured>,
    /// Those that ran beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<NeighbourMeasured>,
}

/// What became of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ApplicationStatus {
    /// It was measured.
    Measured(Box<ApplicationMeasured>),
    /// It failed.
    Failed {
        /// What the user is told.
        why: String,
        /// The end of what the client printed, if it ran.
        output: Option<String>,
    },
}

/// One line of `results.jsonl`: one measurement of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationRecord {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the side.
    pub side: String,
    /// How many ran beside it; none where it was alone.
    pub neighbours: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// When measuring began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub status: ApplicationStatus,
}

impl ApplicationRecord {
    /// The measurement, if there is one.
    #[must_use]
    pub fn measured(&self) -> Option<&ApplicationMeasured> {
        match &self.status {
            ApplicationStatus::Measured(measured) => Some(measured),
            ApplicationStatus::Failed { .. } => None,
        }
    }

    /// Why there is none.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match &self.status {
            ApplicationStatus::Measured(_) => None,
            ApplicationStatus::Failed { why, .. } => Some(why),
        }
    }
}

impl Record for ApplicationRecord {
    fn follows(plan: &Plan) -> bool {
        plan.application().is_some()
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        Vec::new()
    }
}
