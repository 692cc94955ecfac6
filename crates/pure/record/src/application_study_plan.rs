//! An appliance under a client of the user's, natively and in VMs, alone and beside neighbours: the plan of the study.

use serde::{Deserialize, Serialize};

use crate::workload::Better;

/// A number that a client prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationMetric {
    /// Its name.
    pub name: String,
    /// The regular expression that finds it: its one group is the number, its last match counts.
    pub pattern: String,
    /// Its unit, as the user writes it.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
}

/// An appliance and who loads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationLoad {
    /// The recipe's name.
    pub appliance: String,
    /// Digest of the appliance's root, in hexadecimal digits.
    pub root: String,
    /// Commands of this host that filled the data once, each a program and its arguments.
    pub prepare: Vec<Vec<String>>,
    /// The command that loads it, a program and its arguments. `{host}` and `{port}` stand for the appliance's address.
    pub client: Vec<String>,
}

/// Another appliance of the same application, which those before it reach by a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationTier {
    /// The name by which it is reached.
    pub name: String,
    /// The recipe's name.
    pub appliance: String,
    /// Digest of the appliance's root, in hexadecimal digits.
    pub root: String,
    /// Commands of this host that filled the data once, each a program and its arguments.
    pub prepare: Vec<Vec<String>>,
}

/// What a study of an application set out to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationPlan {
    /// What is measured.
    pub load: ApplicationLoad,
    /// Further tiers of the application: what is measured reaches each, and each those that follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<ApplicationTier>,
    /// What is read from what its client prints.
    pub metrics: Vec<ApplicationMetric>,
    /// How long a client may take, in nanoseconds.
    pub limit_ns: u64,
    /// About how long it takes, in nanoseconds, where the user says so.
    pub takes_ns: Option<u64>,
    /// The sides: natively and in a VM by turns, for each number of processors.
    pub sides: Vec<ApplianceSide>,
    /// Repetitions, each with a boot of its own.
    pub repetitions: u32,
    /// How many run beside it; it is also measured alone.
    pub neighbours: u32,
    /// What they run; the same as what is measured where nothing is said.
    pub neighbour: Option<ApplicationLoad>,
    /// Where data are kept: `file`, or a disk of the fence's as [`crate::BackingFacts`] names it.
    pub disk: String,
    /// Seed of the resampling.
    pub seed: u64,
    /// What executes the VMs' instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// How clients reach a VM: `user` or `tap`.
    pub network: String,
}

impl ApplicationPlan {
    /// The numbers of neighbours that each side is measured beside: none, and as many as were asked for.
    #[must_use]
    pub fn company(&self) -> Vec<u32> {
        if self.neighbours == 0 { vec![0] } else { vec![0, self.neighbours] }
    }
}

/// One side: the same appliance, natively or in a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplianceSide {
    /// Its name, such as `native` or `vm-2`.
    pub name: String,
    /// Whether it is a VM.
    pub vm: bool,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl ApplianceSide {
    /// Both sides, or those asked for, of each size: `vms` says which are VMs. Where sizes are compared, names tell the processors.
    #[must_use]
    pub fn of_sizes(vms: &[bool], sizes: &[u32], memory_bytes: u64) -> Vec<Self> {
        let side = |vm: bool, vcpus: u32| {
            let kind = if vm { "vm" } else { "native" };
            let name = if sizes.len() > 1 { format!("{kind}-{vcpus}") } else { kind.to_owned() };
            Self { name, vm, vcpus, memory_bytes }
        };
        sizes.iter().flat_map(|vcpus| vms.iter().map(move |vm| side(*vm, *vcpus))).collect()
    }
}
