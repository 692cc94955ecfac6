//! What a study of sides measures: a list of samples for each side and repetition. Table, history, comparison and page are made of it,
//! whatever the study is about.

use serde::{Deserialize, Serialize};

use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey, NoDetail};
use crate::plan::Plan;
use crate::summary::{Conclusion, Estimated};
use crate::workload::{Better, Sample};

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

/// Pages that the kernel gave meanwhile, by where they were wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaPages {
    /// On the node of the processor that wanted them.
    pub local: u64,
    /// On another node.
    pub remote: u64,
    /// Moved from node to node afterwards.
    pub migrated: u64,
}

/// The disk of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedDisk {
    /// The configuration, such as `virtio-blk,cache=writethrough`.
    pub setup: String,
    /// Requests that it takes at once; absent where the guest does not tell.
    pub takes_at_once: Option<u32>,
    /// Requests that the load kept outstanding.
    pub outstanding: u32,
    /// `write back` or `write through`; absent where the guest does not tell.
    pub write_cache: Option<String>,
    /// What it did over all points, in bytes a second.
    pub throughput_bytes_per_s: f64,
    /// The same over the points that only write; absent where none does.
    pub writes_bytes_per_s: Option<f64>,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformObserved {
    /// The least and the greatest mean frequency of the processors, in MHz, as it was looked at every half second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_mhz: Option<[u32; 2]>,
    /// Pages by node; absent where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<NumaPages>,
    /// Disks of guests, where configurations were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<ObservedDisk>,
}

/// One figure of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformMetric {
    /// What was measured.
    pub name: String,
    /// Which direction of the figure is better.
    pub better: Better,
    /// How many times this host's it is, turned so that more is better.
    pub ratio: f64,
}

/// One domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformDomainNumbers {
    /// Its name.
    pub name: String,
    /// How much it counts in the score.
    pub weight: f64,
    /// The geometric mean of its figures; null where it was not measured.
    pub ratio: Option<Estimated>,
    /// Its figures.
    pub metrics: Vec<PlatformMetric>,
    /// What its runs come to, in sentences.
    pub sentences: Vec<String>,
    /// Repetitions that failed, and why.
    pub failures: Vec<String>,
    /// What this host lacks for it; null where it has it.
    pub unavailable: Option<String>,
}

/// The figures of a study of a platform, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The weighted geometric mean over the domains that were measured; null where none was.
    pub score: Option<Estimated>,
    /// Names of the domains that have a part in the score. Scores of other domains are other scores.
    pub of_domains: Vec<String>,
    /// Every domain, in the order of the plan.
    pub domains: Vec<PlatformDomainNumbers>,
}
