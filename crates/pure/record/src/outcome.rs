//! What one load did on one target.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;
use virtbench_workload::LoadSpec;

/// Operations of one direction, or of both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionStats {
    /// Operations completed without error while measuring.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Latency in nanoseconds; null where no operation completed.
    pub latency_ns: Option<LatencySummary>,
    /// Latencies of all operations: an HdrHistogram, compressed V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// One interval of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Length, in nanoseconds; the last interval may be shorter.
    pub length_ns: u64,
    /// Operations completed.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Mean latency, in nanoseconds; null where nothing completed.
    pub mean_latency_ns: Option<f64>,
}

/// What kind of thing was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// Nothing: operations complete at once.
    Null,
    /// An export of an NBD server.
    Nbd,
    /// A vhost-user-blk server.
    VhostUser,
}

impl TargetKind {
    /// Whether this machine's page cache may lie between the load and it.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, Self::File | Self::BlockDevice)
    }
}

/// The target as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetFacts {
    /// Its path, or `null`.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Whether the page cache was really bypassed.
    pub direct: bool,
    /// Offsets and lengths must be multiples of this for direct I/O, in bytes.
    pub alignment_bytes: u32,
}

/// The outcome of one load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadOutcome {
    /// Reads and writes together.
    pub total: DirectionStats,
    /// Reads.
    pub read: DirectionStats,
    /// Writes.
    pub write: DirectionStats,
    /// Operations that failed while measuring.
    pub errors: u64,
    /// Failed operations by the error's name.
    pub error_kinds: BTreeMap<String, u64>,
    /// How long was really measured, in nanoseconds of the measuring machine's clock.
    pub elapsed_ns: u64,
    /// Whether the run was stopped before its time.
    pub interrupted: bool,
    /// CPU time the load generator itself used while measuring, in nanoseconds (user, system).
    pub own_cpu_ns: [u64; 2],
    /// The series.
    pub intervals: Vec<Interval>,
    /// The target as it was found.
    pub target: TargetFacts,
    /// The load.
    pub spec: LoadSpec,
    /// Seed of every random choice (also in `spec`).
    pub seed: u64,
    /// What a reader should know, such as why direct I/O was not possible.
    pub notes: Vec<String>,
}
