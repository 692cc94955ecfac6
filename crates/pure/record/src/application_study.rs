//! What was measured of an appliance under a client of the user's: a line for each measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::{ApplianceFacts, PathCost};
use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey};
use crate::plan::Plan;

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

/// What is known of a measurement that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationFailureDetail {
    /// The end of what the client printed, if it ran.
    pub output: Option<String>,
}

/// One measurement of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationKey {
    /// Name of the side.
    pub side: String,
    /// How many ran beside it; none where it was alone.
    pub neighbours: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of an application.
pub type ApplicationRecord = Measurement<ApplicationKey>;

impl MeasurementKey for ApplicationKey {
    type Measured = ApplicationMeasured;
    type Detail = ApplicationFailureDetail;

    fn follows(plan: &Plan) -> bool {
        plan.application().is_some()
    }
}
