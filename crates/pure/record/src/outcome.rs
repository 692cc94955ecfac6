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

/// How an open loop kept up with its rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenLoop {
    /// Operations that were meant to start while measuring.
    pub offered: u64,
    /// Operations given up because too many were waiting to start; they have no latency.
    pub dropped: u64,
    /// Operations that were due but not started at the end; of a trace, when its last operation was due.
    pub backlog_end: u64,
    /// The most that were due but not started at any time, summed over the workers.
    pub backlog_max: u64,
    /// Whether the target could not keep up: operations were dropped, or the backlog at the end is
    /// larger than all that may be outstanding and than 1 % of what was offered, or more than 1 % of it
    /// (and than two) were overdue at the end: in flight or not started for longer than 99 % of those
    /// that completed took.
    pub saturated: bool,
    /// Time from the real start of a read, write or trim to its completion, in nanoseconds.
    pub service_ns: Option<LatencySummary>,
    /// Service times of all operations: an HdrHistogram, compressed V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_histogram: Option<String>,
}

/// Operations that were in flight when measuring ended. They are in none of the other figures, except
/// that those that failed are among the errors. The longest latencies are among them, because whatever
/// takes longer than the rest of the run is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InFlightAtEnd {
    /// How many there were.
    pub operations: u64,
    /// How long they had waited by then, in nanoseconds; null where there was none.
    pub waited_ns: Option<LatencySummary>,
    /// Those that completed afterwards.
    pub completed: u64,
    /// Those that failed afterwards, or did not complete within the time limit.
    pub failed: u64,
    /// Operations that had waited longer by then than 99 % of the completed reads and writes took; in
    /// an open loop those that were due and not started are counted too.
    pub overdue: u64,
    /// Latencies of the reads and writes in nanoseconds, with the unfinished counted in: those in flight
    /// with what they took until they completed, failed or were given up, those that were due and not
    /// started with how long they had waited.
    pub counted_in_ns: Option<LatencySummary>,
}

/// How much of a trace was replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// Operations of the trace, flushes included.
    pub operations: u64,
    /// Those that were started, ramp-up included.
    pub started: u64,
    /// Whether that was all of them.
    pub whole: bool,
}

/// The outcome of one load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadOutcome {
    /// Reads, writes and trims together; its bytes are those that moved.
    pub total: DirectionStats,
    /// Reads.
    pub read: DirectionStats,
    /// Writes.
    pub write: DirectionStats,
    /// Trims, where the load trims; their bytes are those discarded, and not among the total's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<DirectionStats>,
    /// Flushes, where the load flushes; not part of the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<DirectionStats>,
    /// Reads, writes and trims of each line of the mix, in the order of `spec`; empty where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<DirectionStats>,
    /// Operations that were in flight when measuring ended; absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_at_end: Option<InFlightAtEnd>,
    /// What only an open loop, or a trace at a pace, has: latencies above then count from the intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// How much of a trace was replayed, where the load replays one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replayed>,
    /// What verification found, where blocks were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verification>,
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

impl LoadOutcome {
    /// The outcome of a load that ran its whole time and completed nothing: what a measurement, or a
    /// made-up one, is put into.
    #[must_use]
    pub fn empty(spec: LoadSpec, target: TargetFacts) -> Self {
        Self {
            total: DirectionStats::default(),
            read: DirectionStats::default(),
            write: DirectionStats::default(),
            trim: None,
            flush: None,
            lines: Vec::new(),
            in_flight_at_end: None,
            open_loop: None,
            replay: None,
            verify: None,
            errors: 0,
            error_kinds: BTreeMap::new(),
            elapsed_ns: spec.time_ns,
            interrupted: false,
            own_cpu_ns: [0, 0],
            intervals: Vec::new(),
            target,
            seed: spec.seed,
            spec,
            notes: Vec::new(),
        }
    }
}

impl LoadOutcome {
    /// Takes the histograms of reads and writes out under `tag`. That of both together is dropped: it can
    /// be added up again.
    pub(crate) fn take_histograms(&mut self, tag: &str, started_unix_ns: u64) -> Vec<TakenHistogram> {
        self.total.histogram = None;
        let length_ns = self.elapsed_ns;
        let directions = [(&mut self.read, "read"), (&mut self.write, "write")];
        let taken = directions.into_iter().filter_map(|(stats, direction)| {
            let histogram = stats.histogram.take()?;
            Some(TakenHistogram { tag: format!("{tag}/{direction}"), started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }
}

impl TargetFacts {
    /// The null target of so many bytes.
    #[must_use]
    pub fn null(size_bytes: u64) -> Self {
        Self { path: "null".into(), kind: TargetKind::Null, size_bytes, direct: false, alignment_bytes: 1 }
    }
}

/// A histogram as it is kept in the HdrHistogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenHistogram {
    /// Where it belongs.
    pub tag: String,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How long it was, in nanoseconds.
    pub length_ns: u64,
    /// It itself: compressed V2 in base64.
    pub histogram: String,
}

/// How a block differs from what it should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// After the load, the target still holds another version than the one it acknowledged.
    Lost,
    /// During the load, a read returned another version than the one acknowledged.
    Stale,
    /// Sectors of one block come from different writes.
    Torn,
    /// The block holds what was written for another offset.
    Misplaced,
    /// The block was written by another run: its header carries another seed.
    Foreign,
    /// A header or what follows it does not match its checksum, or there is no header at all.
    Corrupt,
}

/// One damaged block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DamagedBlock {
    /// Where, in bytes from the target's start.
    pub offset: u64,
    /// In what way.
    pub damage: Damage,
    /// What was expected and what was found.
    pub words: String,
}

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Size of a block, in bytes: the unit that is judged as one.
    pub block_bytes: u64,
    /// Blocks whose contents were judged, each time they were read.
    pub blocks_checked: u64,
    /// Blocks read of which nothing is known: never written, trimmed, or their write failed.
    pub blocks_unknown: u64,
    /// See [`Damage::Lost`].
    pub lost: u64,
    /// See [`Damage::Stale`].
    pub stale: u64,
    /// See [`Damage::Torn`].
    pub torn: u64,
    /// See [`Damage::Misplaced`].
    pub misplaced: u64,
    /// See [`Damage::Foreign`].
    pub foreign: u64,
    /// See [`Damage::Corrupt`].
    pub corrupt: u64,
    /// The first damaged blocks, at most ten.
    pub examples: Vec<DamagedBlock>,
    /// Whether the whole region was read once the load was over.
    pub complete: bool,
}

impl Verification {
    /// The most examples kept.
    pub const MAX_EXAMPLES: usize = 10;

    /// Findings of every kind together.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.lost + self.stale + self.torn + self.misplaced + self.foreign + self.corrupt
    }

    /// Counts a finding, and keeps it while there are few examples.
    pub fn add(&mut self, block: DamagedBlock) {
        *match block.damage {
            Damage::Lost => &mut self.lost,
            Damage::Stale => &mut self.stale,
            Damage::Torn => &mut self.torn,
            Damage::Misplaced => &mut self.misplaced,
            Damage::Foreign => &mut self.foreign,
            Damage::Corrupt => &mut self.corrupt,
        } += 1;
        if self.examples.len() < Self::MAX_EXAMPLES {
            self.examples.push(block);
        }
    }

    /// Adds what another worker found in the same run.
    pub fn merge(&mut self, other: &Self) {
        self.blocks_checked += other.blocks_checked;
        self.blocks_unknown += other.blocks_unknown;
        self.lost += other.lost;
        self.stale += other.stale;
        self.torn += other.torn;
        self.misplaced += other.misplaced;
        self.foreign += other.foreign;
        self.corrupt += other.corrupt;
        let room = Self::MAX_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
        self.complete |= other.complete;
    }
}
