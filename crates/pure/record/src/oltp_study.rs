//! What was measured of a database under TPC-C's transactions on several sides: a line for each measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::ApplianceFacts;
use crate::application::{ApplicationRatios, ApplicationSideNumbers, Quantity};
use crate::application_study_plan::ApplianceSide;
use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey};
use crate::oltp::OltpOutcome;
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::summary::{Conclusion, Estimated};

/// What a measurement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpStep {
    /// How many users saturate the side, and the curve of users against throughput.
    Search,
    /// The side at its own saturation.
    Saturation,
    /// As many users as saturate the side that takes fewest.
    EqualUsers,
}

impl OltpStep {
    /// As tags and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Saturation => "saturation",
            Self::EqualUsers => "equal_users",
        }
    }
}

/// What was seen of a side under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpMeasured {
    /// The load and what came of it.
    pub outcome: OltpOutcome,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
    /// The whole host meanwhile.
    pub host: HostUse,
    /// What else is known, in the units of [`Quantity`].
    pub known: BTreeMap<Quantity, f64>,
    /// What is not, and why not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<Quantity, String>,
    /// What else happened meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<OltpTimeline>,
    /// Exits from the guest to KVM a transaction, by what KVM calls them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kvm_exits: BTreeMap<String, f64>,
    /// Why exits are not known, of a VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kvm_exits: Option<String>,
}

/// What is known of a measurement that failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpFailureDetail {
    /// What was measured all the same, by a load that ended early or left a database that is not consistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<OltpOutcome>>,
}

/// One measurement of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpKey {
    /// Name of the side.
    pub side: String,
    /// What it is for.
    pub step: OltpStep,
    /// Users.
    pub users: u32,
    /// Which repetition, from 0; the search has one.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of a database.
pub type OltpRecord = Measurement<OltpKey>;

impl MeasurementKey for OltpKey {
    type Measured = OltpMeasured;
    type Detail = OltpFailureDetail;

    fn follows(plan: &Plan) -> bool {
        plan.oltp().is_some()
    }

    fn take_histograms(&self, started_unix_ns: u64, measured: &mut OltpMeasured) -> Vec<TakenHistogram> {
        let tag = format!("{}/{}-u{}/{}", self.side, self.step.name(), self.users, self.repetition);
        let length_ns = measured.outcome.elapsed_ns;
        let kinds = measured.outcome.transactions.iter_mut();
        let taken = kinds.filter_map(|(kind, transactions)| {
            let histogram = transactions.histogram.take()?;
            Some(TakenHistogram { tag: format!("{tag}/{kind}"), started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }
}

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

/// What may make a second differ from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpCause {
    /// The database wrote its dirty pages.
    Checkpoint,
    /// The database cleaned or analysed tables by itself.
    Autovacuum,
    /// A hypervisor below this host took processor time away.
    StolenTime,
    /// Other programs used this host.
    BusyHost,
    /// The first seconds, in which caches are still filled.
    ColdCache,
}

impl OltpCause {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Checkpoint, Self::Autovacuum, Self::StolenTime, Self::BusyHost, Self::ColdCache];

    /// As a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Autovacuum => "autovacuum",
            Self::StolenTime => "stolen time",
            Self::BusyHost => "busy host",
            Self::ColdCache => "cold caches",
        }
    }
}

/// Something that took a while.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpEvent {
    /// What disturbs the database meanwhile.
    pub cause: OltpCause,
    /// Its begin, in nanoseconds since measuring began; before that it is below zero.
    pub begin_ns: i64,
    /// Its end, likewise.
    pub end_ns: i64,
}

/// The host and the storage in one second of measuring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpHostSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Use of the host's processors, in percent of one.
    pub cpu_percent: f64,
    /// Time that a hypervisor below took, in percent of one processor.
    pub steal_percent: f64,
    /// Other programs, in percent of one processor.
    pub others_percent: Option<f64>,
    /// Whether they used so much that it disturbs.
    pub busy: bool,
    /// Operations of the disk of the data, per second.
    pub iops: Option<f64>,
    /// Context switches of the whole host, per second.
    pub context_switches: Option<f64>,
}

/// Everything on one timeline beside the transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpTimeline {
    /// Each second but the first, which is over when the host is looked at for the first time.
    pub seconds: Vec<OltpHostSecond>,
    /// What the database says that it did, in the order of its log.
    pub events: Vec<OltpEvent>,
    /// What is not known, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
}
