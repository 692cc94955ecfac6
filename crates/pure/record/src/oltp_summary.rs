//! What a program reads of a study of a database.

use serde::{Deserialize, Serialize};

use crate::appliance_side::ApplianceSide;
use crate::application_summary::{ApplicationRatios, ApplicationSideNumbers};
use crate::oltp_timeline::OltpCause;
use crate::summary::{Conclusion, Estimated};

/// A number of users, and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpCurveNumbers {
    /// Users.
    pub users: u32,
    /// Transactions per second.
    pub transactions_per_second: f64,
    /// 90th percentile of New-Order's response time, in nanoseconds.
    pub p90_ns: Option<f64>,
    /// Idle time of the side's processors, in percent of all of them.
    pub idle_percent: Option<f64>,
}

/// Seconds of a side at saturation in which something else happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpCauseNumbers {
    /// What; null for any.
    pub cause: Option<OltpCause>,
    /// In how many seconds.
    pub seconds: usize,
    /// Of how many.
    pub of_seconds: usize,
    /// How much of the variance of all seconds lies in them, in percent.
    pub variance_percent: f64,
    /// Their mean throughput as a multiple of that of all.
    pub throughput_ratio: f64,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpSideNumbers {
    /// The side.
    #[serde(flatten)]
    pub side: ApplianceSide,
    /// Users that saturate it.
    pub users: Option<u32>,
    /// Why more were not tried: `saturated`, `no_growth` or `most_users`.
    pub end: Option<String>,
    /// 90th percentile of New-Order's response time at saturation, in nanoseconds.
    pub p90_ns: Option<Estimated>,
    /// Standard deviation between runs at saturation, each with a boot of its own, in percent of their mean.
    pub between_runs_percent: Option<f64>,
    /// Standard deviation between the parts of a run, likewise; the mean over the runs.
    pub within_run_percent: Option<f64>,
    /// Where the variance of seconds lies: with any cause, then cause by cause.
    pub causes: Vec<OltpCauseNumbers>,
    /// What the search tried, by ascending number of users.
    pub curve: Vec<OltpCurveNumbers>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// The figures of a study of a database, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The sides, the reference first.
    pub sides: Vec<OltpSideNumbers>,
    /// What is known of each at its own saturation.
    pub saturated: Vec<ApplicationSideNumbers>,
    /// All but the first against it there.
    pub saturated_ratios: Vec<ApplicationRatios>,
    /// What is known of each at equal users.
    pub equal: Vec<ApplicationSideNumbers>,
    /// All but the first against it there.
    pub equal_ratios: Vec<ApplicationRatios>,
}
