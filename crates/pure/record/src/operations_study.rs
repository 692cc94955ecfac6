//! What was measured of management operations: a line for each piece of a run, and one for each operation in its log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;

use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey, NoDetail};
use crate::operations::{CloneKind, FailureKind, JobFigure, OperationKind, Phase, Phases};
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::summary::{Conclusion, Estimated};

/// What came of one kind of operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationNumbers {
    /// Those that did what they are for.
    pub done: u64,
    /// Those that did not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<FailureKind, u64>,
    /// Times that the platform was asked again.
    #[serde(default)]
    pub retries: u64,
    /// From the intended start until the effect was seen, in nanoseconds, of those that were done.
    pub latency_ns: Option<LatencySummary>,
    /// Of which in each phase, in nanoseconds; phases that the platform does not tell apart are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases_ns: BTreeMap<Phase, LatencySummary>,
    /// What the platform told of them as jobs of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job: BTreeMap<JobFigure, JobSummary>,
    /// Why it did not tell of some that it does as jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_unavailable: Option<String>,
    /// All latencies: HdrHistogram's compressed V2 in base64, in `histograms.hlog` of the run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// A figure of several jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSummary {
    /// Jobs that it is known of.
    pub jobs: u64,
    /// Its mean.
    pub mean: f64,
    /// The largest.
    pub most: u64,
}

/// What a tenant did in a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TenantMeasured {
    /// Its name.
    pub name: String,
    /// I/Os per second of a load; of another workload what it does in a second, in its leading figure's unit.
    pub iops: f64,
    /// Their latency, in nanoseconds.
    pub latency_ns: Option<LatencySummary>,
}

/// What a piece did in its steady state: neither the time in which its first operations were under way nor the drain after its end counts
/// as time in which the platform did nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteadyWindow {
    /// When it begins, in nanoseconds from the beginning of the piece.
    pub from_ns: u64,
    /// When it ends, likewise.
    pub until_ns: u64,
    /// Operations that were to start within it, and had a VM.
    pub intended: u64,
    /// Operations that were due or in flight when it began.
    pub backlog_at_start: u64,
    /// And when it ended.
    pub backlog_at_end: u64,
    /// Whether operations take longer than half of the piece, so that it has no steady state.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_short: bool,
    /// Whether the backlog stayed as it was; nothing where the piece is too short to tell, and in a closed loop, which waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_up: Option<bool>,
    /// Operations that were done, a minute, by kind.
    pub per_minute: BTreeMap<OperationKind, f64>,
}

impl SteadyWindow {
    /// Operations of all kinds that were done, a minute: the score of [Platform 2014].
    #[must_use]
    pub fn total_per_minute(&self) -> f64 {
        self.per_minute.values().fold(0.0, |sum, one| sum + one)
    }

    /// Operations of this kind, by its name, that were done a minute.
    #[must_use]
    pub fn rate_of(&self, name: &str) -> Option<f64> {
        self.per_minute.iter().find(|(kind, _)| kind.name() == name).map(|(_, rate)| *rate)
    }
}

/// What was seen in a piece.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsMeasured {
    /// From its beginning until its last operation was seen, in nanoseconds.
    pub elapsed_ns: u64,
    /// Operations that were to start.
    pub intended: u64,
    /// Of which could not, since no VM was in a state for them.
    pub not_issued: u64,
    /// How long nobody answered, in nanoseconds: the mean over its clients. What an open loop misses then is not issued.
    #[serde(default, skip_serializing_if = "is_zero_ns")]
    pub outage_ns: u64,
    /// What came of each kind.
    pub operations: BTreeMap<OperationKind, OperationNumbers>,
    /// Of the clones, what came of each way to make their disks, where there were several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clones: BTreeMap<CloneKind, OperationNumbers>,
    /// From the intended start until the effect was seen, in nanoseconds, of all that were done.
    pub latency_ns: Option<LatencySummary>,
    /// What it did in its steady state; nothing at a fixed pace, and in what earlier versions measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyWindow>,
    /// VMs at its end.
    pub vms_at_end: u32,
    /// Of which ran.
    pub running_at_end: u32,
    /// The host of virtbench meanwhile.
    pub host: HostUse,
    /// What the platform's own processes used meanwhile; nothing in what earlier versions measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<ManagementUse>,
    /// What the tenants did meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantMeasured>,
    /// The first failures, in the platform's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_failures: Vec<String>,
}

impl OperationsMeasured {
    /// Operations that did what they are for.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.operations.values().map(|one| one.done).sum()
    }

    /// Operations that did not.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.operations.values().flat_map(|one| one.failed.values()).sum()
    }

    /// Operations that were to start and never reached the platform: no VM was in a state for them, or nobody answered.
    #[must_use]
    pub fn not_reached(&self) -> u64 {
        self.not_issued + self.unreachable()
    }

    /// Operations for which the platform could not be reached.
    #[must_use]
    pub fn unreachable(&self) -> u64 {
        self.operations.values().filter_map(|one| one.failed.get(&FailureKind::Unreachable)).sum()
    }

    /// Takes the histograms of its operations out, for the file of a run folder that has them.
    pub(crate) fn take_histograms(&mut self, tag: &str, started_unix_ns: u64) -> Vec<TakenHistogram> {
        let length_ns = self.elapsed_ns;
        let operations = self.operations.iter_mut().map(|(kind, one)| (kind.name().to_owned(), one));
        let clones = self.clones.iter_mut().map(|(way, one)| (format!("clone-{}", way.name()), one));
        let taken = operations.chain(clones).filter_map(|(name, numbers)| {
            let histogram = numbers.histogram.take()?;
            let tag = format!("{tag}/{name}");
            Some(TakenHistogram { tag, started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }

    /// Done a minute, in the steady state where that is known.
    #[must_use]
    pub fn per_minute(&self) -> f64 {
        if let Some(steady) = &self.steady {
            return steady.total_per_minute();
        }
        self.done() as f64 * 60e9 / self.elapsed_ns.max(1) as f64
    }
}

/// One piece of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsKey {
    /// VMs that there were to begin with.
    pub vms: u32,
    /// Which piece at this number of VMs, from 0.
    pub piece: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
}

/// One line of `results.jsonl` of a study of management operations.
pub type OperationsRecord = Measurement<OperationsKey>;

impl MeasurementKey for OperationsKey {
    type Measured = OperationsMeasured;
    type Detail = NoDetail;

    fn follows(plan: &Plan) -> bool {
        plan.operations().is_some()
    }

    fn take_histograms(
        &self,
        started_unix_ns: u64,
        measured: &mut OperationsMeasured,
    ) -> Vec<TakenHistogram> {
        measured.take_histograms(&format!("{}-vms/{}", self.vms, self.piece), started_unix_ns)
    }
}

/// One line of a piece's log: one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationLine {
    /// Which operation.
    pub kind: OperationKind,
    /// The number of its VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<u32>,
    /// How a clone's disk was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<CloneKind>,
    /// When it was to start, in nanoseconds from the beginning of the piece.
    pub intended_ns: u64,
    /// How long each phase took, in nanoseconds, in the order of [`Phase::ALL`].
    pub phases_ns: Phases,
    /// Times that the platform was asked again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailureKind>,
    /// What the platform told of it as a job of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job: BTreeMap<JobFigure, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero_ns(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

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

/// The processes of the management stack on this host, over a piece ([Platform 2014], section III.C).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagementUse {
    /// Each process, by name and number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ManagementProcess>,
    /// Why there is none, or not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A process of a management stack, over a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagementProcess {
    /// Its name, such as `libvirtd`.
    pub name: String,
    /// Its number on this host.
    pub pid: u32,
    /// Processor time, its ended children's included, in percent of one processor.
    pub cpu_percent: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}
