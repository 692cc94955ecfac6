//! What a program reads of a study of desktops.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::desktops::DesktopGone;
use crate::desktops_plan::{DesktopGroup, DesktopOperation};
use crate::summary::Conclusion;

/// A percentile with the interval in which it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopPercentile {
    /// Operations that it is of.
    pub operations: u64,
    /// The percentile, in nanoseconds.
    pub ns: u64,
    /// Lower end of the interval, in nanoseconds.
    pub low_ns: u64,
    /// Upper end, in nanoseconds; none where there are too few operations for one.
    pub high_ns: Option<u64>,
}

/// A group at a number of desktops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopGroupNumbers {
    /// Interactive or slow.
    pub group: DesktopGroup,
    /// Its limit, in nanoseconds.
    pub limit_ns: u64,
    /// The plan's percentile of its operations in the steady state.
    pub percentile: Option<DesktopPercentile>,
    /// The same to the last change of the picture, for which nobody inside is needed.
    pub last_change: Option<DesktopPercentile>,
    /// The same as `percentile` of the operations with which all users begin at once.
    pub storm: Option<DesktopPercentile>,
}

/// How far the marker of an operation's end and the last change of the picture are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopAgreement {
    /// Operations of which both are known, in the steady state.
    pub operations: u64,
    /// In half of them at most, in nanoseconds.
    pub median_ns: u64,
    /// In the plan's share of them at most, in nanoseconds.
    pub percentile_ns: u64,
}

/// An operation at a number of desktops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopOperationNumbers {
    /// Its application, its name and its group.
    #[serde(flatten)]
    pub operation: DesktopOperation,
    /// Half of them at most, in nanoseconds.
    pub median_ns: Option<u64>,
    /// The plan's percentile.
    pub percentile: Option<DesktopPercentile>,
    /// To the last change of the picture, half of them at most, in nanoseconds.
    pub last_change_median_ns: Option<u64>,
    /// By the session's own clock, which needs no picture, half of them at most, in nanoseconds.
    pub inside_median_ns: Option<u64>,
    /// How many failed.
    pub failed: u64,
    /// What arrived of videos, where it plays one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<DesktopVideoNumbers>,
}

/// What arrived of the videos of an operation, those that all users begin at once left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopVideoNumbers {
    /// How many were played.
    pub played: u64,
    /// Frames a second that the video has.
    pub rate: u32,
    /// Frames a second that users saw, from the first frame to the last one: the median.
    pub seen_rate: f64,
    /// Frames that did not arrive, in percent of those that the videos have.
    pub dropped_percent: f64,
    /// The longest time from one frame to the next one, in nanoseconds.
    pub longest_freeze_ns: u64,
}

/// So many desktops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopsNumbers {
    /// How many.
    pub desktops: u32,
    /// How many a processor of the host; of existing desktops, whose hosts are not known, how many there are.
    pub per_processor: f64,
    /// Whether users are content: `passed`, `failed`, `open` where the interval holds the limit, or `unknown` where nobody got beyond
    /// the application with which all begin at once.
    pub quality: String,
    /// Both groups.
    pub groups: Vec<DesktopGroupNumbers>,
    /// How far marker and picture are apart, where somebody inside draws markers.
    pub agreement: Option<DesktopAgreement>,
    /// Every operation.
    pub operations: Vec<DesktopOperationNumbers>,
    /// The share of operations that failed, from 0 to 1.
    pub errors: f64,
    /// Operations whose time by the session's own clock is longer than the client's around it: that clock runs fast.
    pub outside: u64,
    /// Desktops that could not be used, each with the reason: never reached, lost, or without a success from some moment on. One is
    /// enough for users not to be content.
    pub lost: Vec<DesktopGone>,
    /// Operations that failed, by what went wrong.
    pub error_kinds: BTreeMap<String, u64>,
    /// The median of each user's operations differs between users by this standard deviation, in percent of the mean.
    pub between_users_percent: Option<f64>,
    /// Half of the first keys of texts were echoed within so many nanoseconds.
    pub echo_median_ns: Option<u64>,
    /// What the host's processors were busy with, in percent of all of them.
    pub host_busy_percent: Option<f64>,
}

/// The figures of a study of desktops, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopsSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The most desktops with which users are content.
    pub most: Option<u32>,
    /// The same where operations end with the last change of the picture: of the numbers that were measured.
    pub most_by_last_change: Option<u32>,
    /// The operation that broke first beyond it.
    pub broke_first: Option<DesktopOperation>,
    /// Every number of desktops, ascending.
    pub numbers: Vec<DesktopsNumbers>,
}
