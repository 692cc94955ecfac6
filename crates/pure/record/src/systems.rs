//! Ways of sharing beside each other: each machine under each of them, and what came of it.

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;

/// Figures of one machine in one set, in virtual time.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// The set.
    pub set: String,
    /// The machine.
    pub vm: String,
    /// Operations a second.
    pub per_second: f64,
    /// Response times, nanoseconds; nothing where nothing completed.
    pub response_ns: Option<LatencySummary>,
}

/// One machine under one system in one repetition, alone or beside the others. Milliseconds, and operations a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SystemRow {
    /// The system.
    pub system: String,
    /// The machine.
    pub vm: String,
    /// Its load, in percent of saturation.
    pub share_percent: Option<f64>,
    /// Whether the others ran too.
    pub beside_others: bool,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Operations a second.
    pub per_second: Option<f64>,
    /// Mean response time.
    pub mean_ms: Option<f64>,
    /// Its median.
    pub p50_ms: Option<f64>,
    /// Its 90th percentile.
    pub p90_ms: Option<f64>,
    /// Its 99th percentile.
    pub p99_ms: Option<f64>,
    /// Operations a second, simulated.
    pub simulated_per_second: Option<f64>,
    /// Mean response time, simulated.
    pub simulated_mean_ms: Option<f64>,
    /// Its median, simulated.
    pub simulated_p50_ms: Option<f64>,
    /// Its 90th percentile, simulated.
    pub simulated_p90_ms: Option<f64>,
    /// Its 99th percentile, simulated.
    pub simulated_p99_ms: Option<f64>,
}

/// A mean over repetitions with its interval of 95 %, null where there are too few, and the least and greatest
/// repetition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranged {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The least repetition.
    pub least: Option<f64>,
    /// The greatest repetition.
    pub greatest: Option<f64>,
}

/// What came of a way of sharing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", content = "why", rename_all = "snake_case")]
pub enum SystemFate {
    /// All its sets are there.
    Measured,
    /// It cannot be had on this host.
    Unavailable(String),
    /// Something went wrong on the way.
    Failed(String),
}

/// One VM under a way of sharing. Of two values the first is alone, the second beside the others; a mean over
/// repetitions each, null where there is none. Deviations are in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemVmNumbers {
    /// The VM.
    pub vm: String,
    /// Its load, in percent of saturation.
    pub share_percent: Option<f64>,
    /// Operations a second.
    pub per_second: [Option<f64>; 2],
    /// By how much they differ.
    pub throughput_deviation: Option<Ranged>,
    /// Mean response time, in milliseconds.
    pub mean_ms: [Option<f64>; 2],
    /// By how much it differs.
    pub response_deviation: Option<Ranged>,
    /// 99th percentile of the response time, in milliseconds.
    pub p99_ms: [Option<f64>; 2],
    /// Operations a second, simulated.
    pub simulated_per_second: [Option<f64>; 2],
    /// By how much they differ.
    pub simulated_throughput_deviation: Option<Ranged>,
    /// Mean response time, in milliseconds, simulated.
    pub simulated_mean_ms: [Option<f64>; 2],
    /// By how much it differs.
    pub simulated_response_deviation: Option<Ranged>,
    /// 99th percentile of the response time, in milliseconds, simulated.
    pub simulated_p99_ms: [Option<f64>; 2],
}

/// A way of sharing with its VMs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemNumbers {
    /// Its name.
    pub system: String,
    /// What it is.
    pub summary: String,
    /// What came of it.
    #[serde(flatten)]
    pub fate: SystemFate,
    /// Its VMs.
    pub vms: Vec<SystemVmNumbers>,
}

/// Ways of sharing beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemsSummary {
    /// Where the table of all measurements is, and a run folder for each way.
    pub folder: String,
    /// Each way of sharing.
    pub systems: Vec<SystemNumbers>,
}
