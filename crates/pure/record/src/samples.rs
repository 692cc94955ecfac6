//! What a study of sides measures: a list of samples for each side and repetition. Table, history, comparison and page are made of it,
//! whatever the study is about.

use serde::{Deserialize, Serialize};

use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey, NoDetail};
use crate::plan::Plan;
use crate::platform_observed::PlatformObserved;
use crate::sample::Sample;

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
    /// What else was seen meanwhile, in a study of a platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<PlatformObserved>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One repetition of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplesKey {
    /// Name of the side.
    pub side: String,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of sides.
pub type SamplesRecord = Measurement<SamplesKey>;

impl MeasurementKey for SamplesKey {
    type Measured = SamplesMeasured;
    type Detail = NoDetail;

    fn follows(plan: &Plan) -> bool {
        plan.sides().is_some()
    }
}
