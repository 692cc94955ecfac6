//! A database under TPC-C's transactions on several sides ([Platform 2014], sections III.A and IV.A): the plan of the study.

use serde::{Deserialize, Serialize};

use crate::appliance_side::ApplianceSide;
use crate::oltp::{DatabaseKind, OltpMix};

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
    pub sides: Vec<ApplianceSide>,
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

impl OltpStudyPlan {}
