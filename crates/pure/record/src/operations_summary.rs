//! What a program reads of a study of management operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::operations::{CloneKind, FailureKind, JobFigure, OperationKind, Phase};
use crate::summary::{Conclusion, Estimated};

/// How long operations of one kind took, over the pieces of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyNumbers {
    /// Those that did what they are for.
    pub done: u64,
    /// Those that did not.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Done a minute in the steady state.
    #[serde(default)]
    pub throughput_per_minute: Option<Estimated>,
    /// Mean, in nanoseconds.
    #[serde(default)]
    pub mean_ns: Option<Estimated>,
    /// Median, in nanoseconds.
    pub p50_ns: Option<Estimated>,
    /// 90th percentile, in nanoseconds.
    pub p90_ns: Option<Estimated>,
    /// 95th percentile, in nanoseconds.
    #[serde(default)]
    pub p95_ns: Option<Estimated>,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: Option<Estimated>,
    /// Mean time in each phase, in nanoseconds.
    pub phases_ns: BTreeMap<Phase, f64>,
    /// What the platform told of them as jobs of its own: means.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job: BTreeMap<JobFigure, f64>,
    /// Why it did not tell of some that it does as jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_unavailable: Option<String>,
}

/// A way to make a clone's disk, at a number of VMs and a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CloneNumbers {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// The way.
    pub way: CloneKind,
    /// What came of it.
    pub clone: LatencyNumbers,
    /// Its median as a multiple of that of the first way, paired by piece; nothing for the first.
    pub ratio: Option<Estimated>,
}

/// What the platform's own processes of a name used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagementNumbers {
    /// Their name, such as `libvirtd`.
    pub name: String,
    /// Processor time, in percent of one processor.
    pub cpu_percent: f64,
    /// Processor time for an operation that was done, in nanoseconds; nothing where none was.
    pub cpu_ns_each: Option<f64>,
    /// The most resident memory at the end of a piece, in bytes.
    pub resident_bytes: u64,
}

/// A number of VMs and a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsStepNumbers {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// Operations a minute that were done.
    pub achieved_per_minute: Option<Estimated>,
    /// The same, under the name that [Platform 2014] gives the throughput of all operations.
    #[serde(default)]
    pub score_per_minute: Option<Estimated>,
    /// Whether the platform kept up; nothing where the pieces do not tell.
    #[serde(default)]
    pub kept_up: Option<bool>,
    /// Mean latency of all operations, in nanoseconds.
    #[serde(default)]
    pub mean_ns: Option<Estimated>,
    /// 95th percentile of all operations, in nanoseconds.
    #[serde(default)]
    pub p95_ns: Option<Estimated>,
    /// Operations that were to start.
    pub intended: u64,
    /// Of which could not, since no VM was in a state for them.
    pub not_issued: u64,
    /// What the management stack used, by the name of its processes.
    #[serde(default)]
    pub management: Vec<ManagementNumbers>,
    /// Why that is not known of some pieces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub management_unavailable: Vec<String>,
    /// By kind.
    pub operations: BTreeMap<OperationKind, LatencyNumbers>,
}

/// How the median latency of an operation grows with the number of VMs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DensityNumbers {
    /// The latency at the most VMs, as a multiple of that at the fewest.
    pub factor: f64,
    /// The exponent of the number of VMs: 1 where the latency doubles with it, 0 where it stays.
    pub exponent: f64,
    /// From this number of VMs on it grows in another way; nothing where a single power fits as well as chance lets it, under three
    /// numbers of VMs, or under five measurements.
    pub bend: Option<f64>,
}

/// What tenants do while operations go on, as a multiple of what they do without.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TenantNumbers {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// I/Os per second, or what another workload does in a second.
    pub iops: Option<Estimated>,
    /// 99th percentile of the latency.
    pub p99: Option<Estimated>,
}

/// The figures of a study of management operations, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Each number of VMs at each rate.
    pub steps: Vec<OperationsStepNumbers>,
    /// Growth with the number of VMs, where there were several.
    pub density: BTreeMap<OperationKind, DensityNumbers>,
    /// Ways to make clones' disks, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<CloneNumbers>,
    /// What it costs the tenants, where there were any.
    pub tenants: Vec<TenantNumbers>,
    /// The highest rate that was sustained, in operations a minute, where that was searched.
    pub sustained_per_minute: Option<f64>,
    /// Pieces that are no result, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}
