//! What users of desktops saw: a line for each number of desktops and repetition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencyRecorder;

use crate::desktops_plan::{DesktopGroup, DesktopOperation, PicturePart};
use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey, NoDetail};
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::summary::Conclusion;

/// How long an operation took, in nanoseconds, as the user before the picture saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopTimes {
    /// To the marker of its end in the picture; of existing desktops to the last change.
    pub latency_ns: u64,
    /// To the first change of the picture elsewhere.
    pub first_change_ns: Option<u64>,
    /// To the last change of the picture elsewhere before it stood still.
    pub last_change_ns: Option<u64>,
    /// By the session's own clock, from the last key or else the beginning to the end, where somebody is inside: shown, and used for
    /// nothing. From the order on, keys and all, where `around_ns` is not there.
    pub inside_ns: Option<u64>,
    /// By the client's clock, within which `inside_ns` lies: from the last key, or from the order, to the marker of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around_ns: Option<u64>,
    /// What arrived of the video, where one was played: `latency_ns` is then the time to its first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<DesktopVideo>,
}

/// What arrived of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopVideo {
    /// How many frames it has.
    pub frames: u32,
    /// Frames a second that it has.
    pub rate: u32,
    /// How many different ones were seen.
    pub seen: u32,
    /// From the first one seen to the last one, in nanoseconds.
    pub elapsed_ns: u64,
    /// The longest time from one frame to the next one, in nanoseconds.
    pub freeze_ns: u64,
    /// Pictures whose number could not be read: halves of two frames, or damaged.
    pub unreadable: u32,
}

/// An operation of a user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopDone {
    /// Whose, from nought on.
    pub user: u32,
    /// Which: its place in the plan's operations.
    pub operation: u32,
    /// When it began, in nanoseconds since users began.
    pub begun_ns: u64,
    /// Whether it belongs to the application that all users start at once.
    pub storm: bool,
    /// How long it took; nothing if it failed.
    pub times: Option<DesktopTimes>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A user whose desktop was of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopGone {
    /// Which, from nought on.
    pub user: u32,
    /// What the user is told.
    pub why: String,
}

/// A picture that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopPicture {
    /// Whose desktop.
    pub user: u32,
    /// What it shows, in words.
    pub what: String,
    /// The picture: a PNG file in base64.
    pub png: String,
}

/// How long the first key of each text took to the change of the picture that followed it; two seconds if none did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopEcho {
    /// How many keys.
    pub keys: u64,
    /// Half of them at most, in nanoseconds.
    pub median_ns: u64,
    /// 95 % of them at most, in nanoseconds.
    pub p95_ns: u64,
}

/// What users saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopsMeasured {
    /// From the first desktop's start until all stood, in nanoseconds; they start one after the other.
    pub ready_ns: u64,
    /// Operations, in the order of their ends.
    pub operations: Vec<DesktopDone>,
    /// Users whose desktops failed.
    pub gone: Vec<DesktopGone>,
    /// Parts of pictures that changed while nobody did anything, and whose changes were left out, by users.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restless: BTreeMap<u32, Vec<PicturePart>>,
    /// First keys of texts and their echoes, if any were typed.
    pub echo: Option<DesktopEcho>,
    /// Pictures: of the operation that took longest beside its limit, and of failures.
    pub pictures: Vec<DesktopPicture>,
    /// Processor time of the clients, in nanoseconds.
    pub client_cpu_ns: u64,
    /// How long users worked, in nanoseconds.
    pub elapsed_ns: u64,
    /// The whole host meanwhile.
    pub host: HostUse,
}

/// So many desktops at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopsKey {
    /// How many.
    pub desktops: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of desktops.
pub type DesktopsRecord = Measurement<DesktopsKey>;

impl MeasurementKey for DesktopsKey {
    type Measured = DesktopsMeasured;
    type Detail = NoDetail;

    fn follows(plan: &Plan) -> bool {
        plan.desktops().is_some()
    }

    /// A histogram for each operation of the plan, by its place there, without what all began at once. The operations stay where they are.
    fn take_histograms(&self, started_unix_ns: u64, measured: &mut DesktopsMeasured) -> Vec<TakenHistogram> {
        let mut recorders: BTreeMap<u32, LatencyRecorder> = BTreeMap::new();
        for done in measured.operations.iter().filter(|done| !done.storm) {
            if let Some(times) = done.times {
                recorders.entry(done.operation).or_default().record(times.latency_ns);
            }
        }
        let length_ns = measured.elapsed_ns;
        let taken = recorders.into_iter().filter_map(|(operation, recorder)| {
            let tag = format!("{}-desktops/{}/operation-{operation}", self.desktops, self.repetition);
            let histogram = recorder.encode_histogram().ok()?;
            Some(TakenHistogram { tag, started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }
}

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
