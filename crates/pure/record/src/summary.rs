//! What a study prints as JSON: its conclusion with the numbers behind it. Each study has a schema.

use serde::{Deserialize, Serialize};

use crate::point::PointKey;

/// A mean, or a ratio, with its confidence interval of 95 %; the ends are null where there are too few
/// repetitions for one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimated {
    /// The mean or ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// What a reader takes away, and where the rest is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conclusion {
    /// The run folder.
    pub folder: String,
    /// The page.
    pub report: String,
    /// The table of all measurements.
    pub csv: String,
    /// The one sentence.
    pub headline: String,
    /// What supports and completes it.
    pub details: Vec<String>,
    /// What keeps a careful reader from taking it for more than it is.
    pub cautions: Vec<String>,
}

/// One environment at one point, over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideNumbers {
    /// Name of the environment.
    pub environment: String,
    /// Repetitions measured.
    pub repetitions: usize,
    /// Bytes per second.
    pub bytes_per_second: Option<Estimated>,
    /// Operations per second.
    pub iops: Option<Estimated>,
    /// Mean latency of all operations, in nanoseconds.
    pub latency_mean_ns: Option<f64>,
    /// 99th percentile of latency in nanoseconds: the median of the repetitions'.
    pub latency_p99_ns: Option<f64>,
    /// CPU use of the host, in percent of one processor, summed over all.
    pub host_cpu_percent: Option<Estimated>,
    /// Operations per second for each percent of host CPU ([ESX Adapters 2006]).
    #[serde(default)]
    pub iops_per_cpu_percent: Option<f64>,
    /// Kilobytes (1,000 bytes) per second for each percent of host CPU ([ESX Adapters 2006]).
    #[serde(default)]
    pub kb_per_second_per_cpu_percent: Option<f64>,
    /// Operations that failed.
    pub errors: u64,
    /// Why repetitions could not be measured.
    pub unavailable: Vec<String>,
}

/// All environments at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointNumbers {
    /// Which point.
    pub point: PointKey,
    /// Environment by environment, in the plan's order.
    pub sides: Vec<SideNumbers>,
}

/// The VM against the native host at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointRatio {
    /// Which point.
    pub point: PointKey,
    /// The VM's throughput as a share of native throughput.
    pub throughput: Option<Estimated>,
    /// The VM's host CPU per operation as a multiple of the native one.
    pub cpu_per_io: Option<Estimated>,
}

/// A kind of guest against the native host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestRatios {
    /// Its name among the environments: `vm` where there is one kind, else `uml` and `tcg`.
    pub environment: String,
    /// Mean over the points of its share of native throughput.
    pub mean_ratio: Option<Estimated>,
    /// The ratio at each point.
    pub ratios: Vec<PointRatio>,
}

/// What `study native-vs-vm` prints as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NativeVsVmSummary {
    /// Conclusion and files.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Measurements that succeeded.
    pub points_measured: usize,
    /// Measurements that cannot be made here.
    pub points_unavailable: usize,
    /// Mean over the points of the VM's share of native throughput: of the first kind of guest where there are several.
    pub mean_ratio: Option<Estimated>,
    /// The ratio at each point, likewise.
    pub ratios: Vec<PointRatio>,
    /// The same of each kind of guest.
    #[serde(default)]
    pub guests: Vec<GuestRatios>,
    /// What was measured at each point.
    pub points: Vec<PointNumbers>,
}

/// One quantity of two configurations, compared at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairNumbers {
    /// Name of the first configuration.
    pub first: String,
    /// Name of the second.
    pub second: String,
    /// Which point.
    pub point: PointKey,
    /// What is compared: `rate`, `efficiency` (I/O per %CPU) or `response_time`.
    pub quantity: String,
    /// The first as a multiple of the second, with its interval of 90 %, which the finding is read from.
    pub ratio: Estimated,
    /// `higher`, `lower`, `equivalent` or `undecided`, said of the first within the margin.
    pub finding: String,
}

/// How a configuration did at all points of one kind and size of I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingNumbers {
    /// Name of the configuration.
    pub configuration: String,
    /// Bytes per second: geometric mean over points and repetitions.
    pub bytes_per_second: f64,
    /// Operations per second for each percent of host CPU, likewise.
    pub iops_per_cpu_percent: Option<f64>,
    /// Its throughput as a multiple of the best's, with an interval that allows for the choice of the best; null for the best.
    pub against_best: Option<Estimated>,
    /// `lower`, `equivalent` or `undecided`, said of that ratio; null for the best.
    pub finding: Option<String>,
}

/// Which configuration for one kind and size of I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindNumbers {
    /// Share of reads, in percent.
    pub read_percent: u8,
    /// Share of random seeks, in percent.
    pub random_percent: u8,
    /// Whether blocks are of up to 16 KiB.
    pub small: bool,
    /// Points that every configuration in `standings` was measured at.
    pub points: usize,
    /// Names of those to use; empty where the best is not told from another.
    pub choices: Vec<String>,
    /// The configurations, the best first.
    pub standings: Vec<StandingNumbers>,
}

/// What `study adapters`, `study compare` and `analyse` print as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdaptersSummary {
    /// Conclusion and files.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Measurements that succeeded.
    pub points_measured: usize,
    /// Measurements that cannot be made here.
    pub points_unavailable: usize,
    /// How much more or less counts as the same, as a share.
    #[serde(default)]
    pub margin: f64,
    /// What was measured at each point.
    pub points: Vec<PointNumbers>,
    /// Every pair of configurations, compared at each point.
    pub pairs: Vec<PairNumbers>,
    /// What to use for each kind and size of I/O.
    #[serde(default)]
    pub kinds: Vec<KindNumbers>,
}

/// One VM's part in a figure of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareNumbers {
    /// The VM.
    pub vm: String,
    /// Its mean, in the figure's unit.
    pub mean: Estimated,
}

/// A figure of one set of VMs that ran together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighbourNumbers {
    /// Name of the set.
    pub set: String,
    /// How many VMs ran together.
    pub vms: usize,
    /// What is measured.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Mean over the VMs.
    pub mean: Estimated,
    /// Standard deviation between the VMs' means.
    pub stddev: Option<f64>,
    /// Sum over the VMs; only where more is better.
    pub accumulated: Option<Estimated>,
    /// Jain's index of the VMs' means.
    pub jain: Option<Estimated>,
    /// VM by VM.
    pub shares: Vec<ShareNumbers>,
    /// CPU use of the host, in percent of one processor.
    pub host_cpu_percent: Option<f64>,
    /// Why it is no finding about the workload, if that is so.
    pub overload: Option<String>,
}

/// A machine of a run of environments, over its measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineNumbers {
    /// The machine.
    pub vm: String,
    /// Name of the environment it lives in.
    pub environment: String,
    /// What that is.
    pub uri: String,
    /// Measurements of it that can be used.
    pub measured: usize,
    /// Measurements in which it failed, could not start, or cannot be used.
    pub without_figures: usize,
    /// When it began, in nanoseconds after the agreed moment: the measurement that is furthest off.
    pub late_ns: Option<i64>,
    /// What is not known of the offset of its clock, in nanoseconds, at most.
    pub offset_uncertainty_ns: Option<u64>,
    /// How much faster its clock ran than this host's, in parts per million: the measurement that is furthest off. Nothing
    /// where it is this host's.
    pub drift_ppm: Option<f64>,
    /// The largest jump of its clock, in nanoseconds, if there was one.
    pub clock_jump_ns: Option<i64>,
    /// Processors of its own machine; nothing where that is this host.
    pub processors: Option<u32>,
    /// What they did, in percent of one, on average.
    pub cpu_percent: Option<f64>,
    /// What a hypervisor below took, in percent of one processor, on average.
    pub steal_percent: Option<f64>,
    /// What other programs used there, in percent of one processor, on average; also absent where it was not sampled.
    pub others_percent: Option<f64>,
}

/// A measurement whose machines did not begin together as exactly as the study needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LooseStart {
    /// Name of the set.
    pub set: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// The most by which one of them may have run apart, in nanoseconds.
    pub uncertainty_ns: u64,
    /// What the study needs, in nanoseconds.
    pub needed_ns: u64,
}

/// What `study neighbours` prints as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighboursSummary {
    /// Conclusion and files.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Measurements of sets.
    pub sets_measured: usize,
    /// VMs without usable figures, over all measurements.
    pub members_without_figures: usize,
    /// Each figure of each set.
    pub figures: Vec<NeighbourNumbers>,
    /// Each machine, in a run of environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineNumbers>,
    /// Measurements whose machines did not begin together as exactly as is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loose_starts: Vec<LooseStart>,
}

/// A figure alone and beside others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviatedNumbers {
    /// Alone.
    pub alone: Estimated,
    /// Beside the others.
    pub beside: Estimated,
    /// The deviation of [VirtualFence 2013], section 4.1, in percent.
    pub deviation_percent: Estimated,
}

/// One VM of a set, against itself alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisturbedNumbers {
    /// Name of the set.
    pub set: String,
    /// The VM.
    pub vm: String,
    /// Its workload, as it is written.
    pub workload: String,
    /// Its share of saturation, in percent.
    pub share_percent: Option<f64>,
    /// Throughput, in the workload's unit a second.
    pub throughput: Option<DeviatedNumbers>,
    /// Mean response time, in nanoseconds.
    pub response_ns: Option<DeviatedNumbers>,
    /// Why it is no finding about the workloads, if that is so.
    pub overload: Option<String>,
}

/// What `study deviation` prints as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviationSummary {
    /// Conclusion and files.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Measurements of sets.
    pub sets_measured: usize,
    /// VMs without usable figures, over all measurements.
    pub members_without_figures: usize,
    /// Saturation of each workload, in its unit a second, where it was looked for.
    pub saturation: Vec<Option<Estimated>>,
    /// Each VM of each set.
    pub vms: Vec<DisturbedNumbers>,
    /// Each machine, in a run of environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineNumbers>,
    /// Measurements whose machines did not begin together as exactly as is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loose_starts: Vec<LooseStart>,
}
