//! A database under TPC-C's transactions on several sides ([Platform 2014], sections III.A and IV.A): the plan of the study,
//! and a line for each measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::ApplianceFacts;
use crate::application::Quantity;
use crate::histogram::TakenHistogram;
use crate::host_use::HostUse;
use crate::oltp::{DatabaseKind, OltpMix, OltpOutcome};
use crate::plan::Plan;
use crate::point::Record;

/// One side: the same appliance, natively or in a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpSide {
    /// Its name, such as `native` or `vm-2`.
    pub name: String,
    /// Whether it is a VM.
    pub vm: bool,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// How many users there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpUsers {
    /// Raised until the processors are saturated or throughput stops growing.
    Auto {
        /// The most that are tried.
        most: u32,
    },
    /// These, one after the other.
    Given(Vec<u32>),
}

/// What a study of a database set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpStudyPlan {
    /// Which database.
    pub database: DatabaseKind,
    /// Digest of the appliance's root, in hexadecimal digits.
    pub root: String,
    /// Warehouses of the population.
    pub warehouses: u32,
    /// Seed of the population.
    pub population_seed: u64,
    /// The sides, the reference first.
    pub sides: Vec<OltpSide>,
    /// Users.
    pub users: OltpUsers,
    /// Repetitions at saturation and at equal users. Each has a boot of its own.
    pub repetitions: u32,
    /// Before each measurement, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of each measurement in the search for saturation, in nanoseconds.
    pub search_ns: u64,
    /// Of each other measurement, in nanoseconds.
    pub time_ns: u64,
    /// Shares of the transactions.
    pub mix: OltpMix,
    /// Keying and think times, times this factor; none where there is none.
    pub think_factor: Option<f64>,
    /// Seed of every random choice of the load.
    pub seed: u64,
    /// What executes the VMs' instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// How clients reach a VM: `user` or `tap`.
    pub network: String,
}

impl OltpStudyPlan {
    /// Which parts of another plan are the same, as a user knows them.
    pub(crate) fn compared_parts(&self, other: &Self) -> Vec<(&'static str, bool)> {
        let times = |plan: &Self| [plan.ramp_up_ns, plan.search_ns, plan.time_ns];
        vec![
            ("the database", self.database == other.database),
            ("the appliance's root", self.root == other.root),
            ("the number of warehouses", self.warehouses == other.warehouses),
            ("the seed of the population", self.population_seed == other.population_seed),
            ("the sides", self.sides == other.sides),
            ("the users", self.users == other.users),
            ("the number of repetitions", self.repetitions == other.repetitions),
            ("ramp-up and measuring times", times(self) == times(other)),
            ("the mix of transactions", self.mix == other.mix && self.think_factor == other.think_factor),
            ("the seed", self.seed == other.seed),
            ("the accelerator", self.accelerator == other.accelerator),
            ("the network", self.network == other.network),
        ]
    }
}

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
}

/// What became of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum OltpStatus {
    /// It was measured.
    Measured(Box<OltpMeasured>),
    /// It failed.
    Failed {
        /// Why.
        why: String,
    },
}

/// One line of `results.jsonl`: one measurement of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpRecord {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the side.
    pub side: String,
    /// What it is for.
    pub step: OltpStep,
    /// Users.
    pub users: u32,
    /// Which repetition, from 0; the search has one.
    pub repetition: u32,
    /// When measuring began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub status: OltpStatus,
}

impl OltpRecord {
    /// The measurement, if there is one.
    #[must_use]
    pub fn measured(&self) -> Option<&OltpMeasured> {
        match &self.status {
            OltpStatus::Measured(measured) => Some(measured),
            OltpStatus::Failed { .. } => None,
        }
    }
}

impl Record for OltpRecord {
    fn follows(plan: &Plan) -> bool {
        plan.oltp().is_some()
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        let tag = format!("{}/{}-u{}/{}", self.side, self.step.name(), self.users, self.repetition);
        let started_unix_ns = self.started_unix_ns;
        let OltpStatus::Measured(measured) = &mut self.status else { return Vec::new() };
        let length_ns = measured.outcome.elapsed_ns;
        let kinds = measured.outcome.transactions.iter_mut();
        let taken = kinds.filter_map(|(kind, transactions)| {
            let histogram = transactions.histogram.take()?;
            Some(TakenHistogram { tag: format!("{tag}/{kind}"), started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }
}
