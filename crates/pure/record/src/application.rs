//! What an application did on each side of a comparison, what its transactions cost there, and what was measured of it alone
//! and beside neighbours; as lines of the run folder and as programs read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::{ApplianceFacts, PathCost};
use crate::application_study_plan::{ApplianceSide, ApplicationMetric};
use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey};
use crate::plan::Plan;
use crate::point::TableFacts;
use crate::summary::{Conclusion, Estimated};

/// What is known of an application on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Users at once.
    Users,
    /// Transactions per second.
    TransactionsPerSecond,
    /// Operations of its storage per second.
    Iops,
    /// Idle time of its processors, in percent of all of them.
    IdlePercent,
    /// Time in which its processors were not halted, in percent.
    UtilisationPercent,
    /// Processor cycles a transaction, without those halted.
    CyclesPerTransaction,
    /// Processor cycles an instruction (CPI).
    CyclesPerInstruction,
    /// Instructions a transaction: the path length.
    InstructionsPerTransaction,
    /// Cycles a transaction in user mode.
    UserCycles,
    /// Cycles a transaction in the kernel: the guest's own where there is one.
    KernelCycles,
    /// Cycles a transaction in the hypervisor: the host's kernel on behalf of the guest.
    HypervisorCycles,
    /// Cycles a transaction in the monitor: the process that emulates the guest's devices.
    MonitorCycles,
    /// Misses of the TLB a transaction.
    TlbMisses,
    /// Cycles a transaction that walks of page tables took.
    PageWalkCycles,
}

impl Quantity {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 14] = [
        Self::Users,
        Self::TransactionsPerSecond,
        Self::Iops,
        Self::IdlePercent,
        Self::UtilisationPercent,
        Self::CyclesPerTransaction,
        Self::CyclesPerInstruction,
        Self::InstructionsPerTransaction,
        Self::UserCycles,
        Self::KernelCycles,
        Self::HypervisorCycles,
        Self::MonitorCycles,
        Self::TlbMisses,
        Self::PageWalkCycles,
    ];

    /// Its column in a table of results.
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::TransactionsPerSecond => "transactions_per_second",
            Self::Iops => "iops",
            Self::IdlePercent => "idle_percent",
            Self::UtilisationPercent => "utilisation_percent",
            Self::CyclesPerTransaction => "cycles_per_transaction",
            Self::CyclesPerInstruction => "cycles_per_instruction",
            Self::InstructionsPerTransaction => "instructions_per_transaction",
            Self::UserCycles => "user_cycles",
            Self::KernelCycles => "kernel_cycles",
            Self::HypervisorCycles => "hypervisor_cycles",
            Self::MonitorCycles => "monitor_cycles",
            Self::TlbMisses => "tlb_misses",
            Self::PageWalkCycles => "page_walk_cycles",
        }
    }

    /// As a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::TransactionsPerSecond => "transactions/s",
            Self::Iops => "IOPS",
            Self::IdlePercent => "idle, %",
            Self::UtilisationPercent => "not halted, %",
            Self::CyclesPerTransaction => "cycles a transaction",
            Self::CyclesPerInstruction => "CPI",
            Self::InstructionsPerTransaction => "path length, instructions",
            Self::UserCycles => "cycles, user",
            Self::KernelCycles => "cycles, kernel",
            Self::HypervisorCycles => "cycles, hypervisor",
            Self::MonitorCycles => "cycles, monitor",
            Self::TlbMisses => "TLB misses",
            Self::PageWalkCycles => "cycles, page walks",
        }
    }
}

/// One repetition on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationRow {
    /// The side.
    pub configuration: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// What is known, in the units of [`Quantity`].
    pub known: BTreeMap<Quantity, f64>,
}

/// A table of applications' results that somebody published or collected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApplicationTable {
    /// What is said of all rows.
    pub facts: TableFacts,
    /// Its rows; the first one's side is the reference.
    pub rows: Vec<ApplicationRow>,
}

/// One side of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationSideNumbers {
    /// Its name.
    pub configuration: String,
    /// What is known of it, each with its interval where there are repetitions for one.
    pub known: BTreeMap<Quantity, Estimated>,
    /// By how many percent CPI times path length misses the cycles, where that is too much.
    pub mismatch_percent: Option<f64>,
}

/// A side against the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationRatios {
    /// Which side.
    pub configuration: String,
    /// The side that it is compared with.
    pub reference: String,
    /// How many times the reference's each quantity is.
    pub ratios: BTreeMap<Quantity, Estimated>,
    /// The part of the further cycles that is slower instructions, in percent; the rest is more of them.
    pub slower_percent: Option<f64>,
}

/// The figures of an application on several sides, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The sides, the reference first.
    pub sides: Vec<ApplicationSideNumbers>,
    /// All but the first against it.
    pub ratios: Vec<ApplicationRatios>,
}

/// One that ran beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighbourMeasured {
    /// How often its client ended meanwhile.
    pub runs: u32,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
}

/// Another tier of the application as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierMeasured {
    /// The name by which it is reached.
    pub name: String,
    /// What the path from the appliance that the client loads to this one costs.
    pub path: PathCost,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
}

/// What was seen of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationMeasured {
    /// Each metric's value, by its name.
    pub values: BTreeMap<String, f64>,
    /// How long the client took, in nanoseconds.
    pub elapsed_ns: u64,
    /// The end of what the client printed.
    pub output: String,
    /// The appliance as it ran, with what the path to it costs.
    pub appliance: ApplianceFacts,
    /// The whole host while the client ran.
    pub host: HostUse,
    /// Further tiers of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierMeasured>,
    /// Those that ran beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<NeighbourMeasured>,
}

/// What is known of a measurement that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationFailureDetail {
    /// The end of what the client printed, if it ran.
    pub output: Option<String>,
}

/// One measurement of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationKey {
    /// Name of the side.
    pub side: String,
    /// How many ran beside it; none where it was alone.
    pub neighbours: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of an application.
pub type ApplicationRecord = Measurement<ApplicationKey>;

impl MeasurementKey for ApplicationKey {
    type Measured = ApplicationMeasured;
    type Detail = ApplicationFailureDetail;

    fn follows(plan: &Plan) -> bool {
        plan.application().is_some()
    }
}

/// What is known of one metric of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationMetricNumbers {
    /// Alone, in the metric's unit.
    pub alone: Option<Estimated>,
    /// How many times the native side of as many processors it is, alone; nothing natively.
    pub ratio: Option<Estimated>,
    /// Beside the neighbours, in the metric's unit.
    pub beside: Option<Estimated>,
    /// How many times its value alone that is.
    pub beside_ratio: Option<Estimated>,
    /// The deviation of [VirtualFence 2013], section 4.1, in percent.
    pub deviation_percent: Option<Estimated>,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationStudySide {
    /// The side.
    #[serde(flatten)]
    pub side: ApplianceSide,
    /// Its metrics, by name.
    pub metrics: BTreeMap<String, ApplicationMetricNumbers>,
    /// What the path to it costs, as it was measured last.
    pub path: Option<PathCost>,
    /// What the path from it to each further tier costs, by the tier's name, as it was measured last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tier_paths: BTreeMap<String, PathCost>,
    /// Use of the host's processors alone, in percent of one.
    pub host_cpu_percent: Option<Estimated>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// The figures of a study of an application, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationStudySummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// What was read from what the client prints.
    pub metrics: Vec<ApplicationMetric>,
    /// How many ran beside it where it was not alone.
    pub neighbours: u32,
    /// The sides, in the plan's order.
    pub sides: Vec<ApplicationStudySide>,
}
