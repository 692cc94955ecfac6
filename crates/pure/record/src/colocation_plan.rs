//! Machines that are to run at one moment: who runs beside whom ([Multi-VM 2010]; [VirtualFence 2013], section 4).

use serde::{Deserialize, Serialize};

/// What a set of machines is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SetRole {
    /// One machine as fast as it can, to find what a share of that is ([VirtualFence 2013], section 4.3).
    Saturation,
    /// One machine with nobody beside it.
    Alone,
    /// Several machines, started at one moment.
    Together,
}

/// A machine of a set and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberPlan {
    /// The machine's name.
    pub vm: String,
    /// Index of its workload in [`ColocationPlan::workloads`].
    pub workload: usize,
    /// Its rate, in percent of the workload's saturation; as fast as it can where there is none.
    pub share_percent: Option<f64>,
}

/// Machines that run together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPlan {
    /// Its name, unique in the run.
    pub name: String,
    /// What it is measured for.
    pub role: SetRole,
    /// Its machines, at least one.
    pub members: Vec<MemberPlan>,
}

/// Where a machine lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Home {
    /// The machine's name.
    pub vm: String,
    /// Name of the environment; machines of one live on the same host or hypervisor.
    pub environment: String,
    /// What the environment is, such as `native:` or `ssh://root@metal/srv`.
    pub uri: String,
}

/// What a run of sets of machines set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColocationPlan {
    /// The workloads, as the command line has them.
    pub workloads: Vec<String>,
    /// Every set, those that find a saturation first.
    pub sets: Vec<SetPlan>,
    /// Repetitions of each set.
    pub repetitions: u32,
    /// Time before measuring of the first workload, in nanoseconds.
    pub ramp_ns: u64,
    /// Measuring time of the first workload, in nanoseconds.
    pub time_ns: u64,
    /// Virtual processors of each machine.
    pub vcpus: u32,
    /// Memory of each machine, in bytes.
    pub memory_bytes: u64,
    /// Whether each machine was held to processors of its own.
    pub pinned: bool,
    /// The configuration of the machines' disks, such as `virtio-blk@qcow2`.
    pub disk: String,
    /// Size of each of them, in bytes.
    pub size_bytes: u64,
    /// The file system on them, if there is one.
    pub filesystem: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Where each machine lives, in their order; none where all are guests that the run boots on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<Home>,
}

impl ColocationPlan {
    /// Where the machine of this name lives; nothing where it is a guest that the run boots on this host.
    #[must_use]
    pub fn home(&self, vm: &str) -> Option<&Home> {
        self.homes.iter().find(|home| home.vm == vm)
    }

    /// The machine of this name with its environment, as `vm2 (metal)`, where it has one.
    #[must_use]
    pub fn label(&self, vm: &str) -> String {
        self.home(vm).map_or_else(|| vm.to_owned(), |home| format!("{vm} ({})", home.environment))
    }

    /// The set of this name.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<&SetPlan> {
        self.sets.iter().find(|set| set.name == name)
    }
}
