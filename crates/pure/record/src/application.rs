//! What an application did on each side of a comparison, and what its transactions cost there: the rows of
//! [Platform 2014], Tables 4 and 5.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table_facts::TableFacts;

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
