//! What `fence status` shows of a running daemon.

use serde::{Deserialize, Serialize};

/// What `fence status` prints as JSON. Counts and sums are since the daemon began, or of the last `seconds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FenceStatus {
    /// Since the look before; null at the first.
    pub seconds: Option<f64>,
    /// Each virtual disk, in the order of the configuration.
    pub disks: Vec<DiskStatus>,
}

/// What a figure rests on that no two looks can be subtracted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OfWindow {
    /// The last minute in which the disk had work, in steps of ten seconds.
    Minute,
    /// Everything since the daemon began.
    All,
}

impl OfWindow {
    /// Its name, also as a label of the daemon's figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::All => "all",
        }
    }
}

/// A virtual disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskStatus {
    /// Its name.
    pub disk: String,
    /// The pool that it is in, where the configuration has pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Reads that were answered.
    pub reads: f64,
    /// Writes that were answered.
    pub writes: f64,
    /// Flushes that were answered.
    pub flushes: f64,
    /// Discards that were answered.
    pub discards: f64,
    /// Bytes that were read and written.
    pub bytes: f64,
    /// Bytes that were written past the cache.
    #[serde(default)]
    pub bypassed_bytes: f64,
    /// Mean response time of reads, in milliseconds; null without any.
    pub read_ms: Option<f64>,
    /// Mean response time of writes, in milliseconds.
    pub write_ms: Option<f64>,
    /// What the next four rest on: everything at a first look, the last minute of work at others.
    pub quantiles_over: OfWindow,
    /// Median response time of reads, in milliseconds, to 1.6 %.
    pub read_p50_ms: Option<f64>,
    /// 99th percentile of the response times of reads, in milliseconds, to 1.6 %.
    pub read_p99_ms: Option<f64>,
    /// Median response time of writes, in milliseconds, to 1.6 %.
    pub write_p50_ms: Option<f64>,
    /// 99th percentile of the response times of writes, in milliseconds, to 1.6 %.
    pub write_p99_ms: Option<f64>,
    /// Requests that failed.
    pub errors: f64,
    /// Requests in flight now.
    pub under_way: f64,
    /// Of blocks read from the disk's partition of the cache, or from the one of all.
    pub hit_ratio: Option<f64>,
    /// Whether the cache refuses writes because a device failed; null without a cache.
    pub degraded: Option<bool>,
    /// Where disks have time slots.
    pub slots: Option<SlotStatus>,
    /// Where the disk's rate is capped.
    pub tokens: Option<TokenStatus>,
    /// Where disks are paced.
    pub paced: Option<PacedStatus>,
    /// Throughput and response over the last minute of work and over all.
    pub steadiness: Vec<SteadinessStatus>,
}

/// Time slots of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotStatus {
    /// Slots that began.
    pub slots: f64,
    /// Those in which something was dispatched.
    pub used: f64,
    /// Those that ended before their time.
    pub credits: f64,
    /// What was left of them, summed, in milliseconds.
    pub credit_ms: f64,
    /// Those that ended after their time.
    pub overruns: f64,
    /// By how much, summed, in milliseconds.
    pub overrun_ms: f64,
    /// What slots to come are owed now, in milliseconds; negative what they owe.
    pub balance_ms: f64,
    /// Predictions of the slow device.
    pub slow: PredictionStatus,
    /// Predictions of the fast device.
    pub fast: PredictionStatus,
}

/// How well the times of batches were predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionStatus {
    /// Batches that completed.
    pub batches: f64,
    /// How much longer batches took than predicted, on average, in milliseconds.
    pub error_ms: Option<f64>,
    /// How far predictions missed, on average, in milliseconds.
    pub absolute_error_ms: Option<f64>,
}

/// How much of the capped rates is saved up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenStatus {
    /// Of I/Os a second, in milliseconds of that rate.
    pub ios_ms: Option<f64>,
    /// Of bytes a second, in milliseconds of that rate.
    pub bytes_ms: Option<f64>,
}

/// Device I/Os that had a due time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacedStatus {
    /// How many.
    pub ios: f64,
    /// How long answers were held until they were due, summed, in milliseconds.
    pub held_ms: f64,
    /// Those that came late.
    pub late: f64,
    /// By how much, summed, in milliseconds.
    pub late_ms: f64,
}

/// How much the seconds of a disk differ, as shares of their mean; and how far that is from what the disk has alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteadinessStatus {
    /// `throughput` or `response`.
    pub of: String,
    /// What it rests on.
    pub over: OfWindow,
    /// Seconds with requests in it.
    pub intervals: f64,
    /// Standard deviation over mean.
    pub variation: Option<f64>,
    /// Greatest less least, over the mean.
    pub spread: Option<f64>,
    /// How far the mean is from that alone, where that is configured.
    pub deviation: Option<f64>,
}
