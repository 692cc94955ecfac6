//! Where a run's figures come from: `run.json`.

use serde::{Deserialize, Serialize};

use crate::host_use::IdleBaseline;
use crate::point::{RecordError, check_format};
use crate::predictions::PredictionsPlan;
use crate::setup::SetupFacts;
use crate::together::TogetherPlan;

/// Ends the note of a measurement whose storage is a file system in memory.
pub const IN_MEMORY: &str = "this is memory, not a disk";

/// Which study a run folder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// The same load natively and in a VM ([ESX Disk 2003], section 3).
    NativeVsVm,
    /// The same load through different virtual adapters and over different backings ([ESX Adapters 2006]).
    Adapters,
    /// The same workload in one VM, in two, in three, ... at once ([Multi-VM 2010]).
    Neighbours,
    /// VMs with others beside them against the same VMs alone ([VirtualFence 2013], sections 4 and 5).
    Deviation,
    /// Applications that are profiled, predicted, and then run in a VM ([ESX Disk 2003], sections 4 and 5).
    Predictions,
}

/// The storage under the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskFacts {
    /// File system type, such as `ext4`.
    pub filesystem: String,
    /// Block device under it, where it could be found.
    pub device: Option<String>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// Its I/O scheduler.
    pub scheduler: Option<String>,
    /// Its write cache mode.
    pub write_cache: Option<String>,
}

/// The host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub distribution: String,
    /// CPU model.
    pub cpu: String,
    /// Processors on line.
    pub processors: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Whether this host is itself a virtual machine, and of what kind.
    pub hypervisor: Option<String>,
    /// The storage that was measured.
    pub disk: DiskFacts,
}

/// What executes the guest's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceleratorFacts {
    /// `kvm` or `tcg`.
    pub name: String,
    /// How that was found out, in words.
    pub why: String,
}

/// The guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestFacts {
    /// What executes its instructions.
    pub accelerator: AcceleratorFacts,
    /// QEMU's version.
    pub qemu: String,
    /// Kernel release.
    pub kernel: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Name of the disk adapter.
    pub adapter: String,
    /// QEMU's whole command line.
    pub command_line: Vec<String>,
    /// From QEMU's start to the agent's greeting, in nanoseconds.
    pub boot_ns: u64,
}

/// What a run set out to measure. A resumed run must have the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Name of the grid, such as `quick` or `paper`.
    pub grid: String,
    /// Block sizes, in bytes.
    pub blocks_bytes: Vec<u64>,
    /// Shares of reads, in percent.
    pub read_percents: Vec<u8>,
    /// Shares of random seeks, in percent.
    pub random_percents: Vec<u8>,
    /// Repetitions of each point in each environment.
    pub repetitions: u32,
    /// Outstanding I/Os a worker.
    pub outstanding: u32,
    /// Workers.
    pub workers: u32,
    /// Ramp-up before each point, in nanoseconds.
    pub ramp_ns: u64,
    /// Measuring time of each point, in nanoseconds.
    pub time_ns: u64,
    /// Size of the disk that is loaded, in bytes.
    pub size_bytes: u64,
    /// Names of the environments, the reference first.
    pub environments: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// A run's `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Which study.
    pub kind: RunKind,
    /// Version of virtbench.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// What it set out to measure.
    pub plan: Plan,
    /// Who was to run beside whom, in a study of several VMs at once. The plan's grid is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<TogetherPlan>,
    /// Which applications were to be predicted, in a study of predictions. The plan's grid is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<PredictionsPlan>,
    /// The host.
    pub host: HostFacts,
    /// The guest, once it has booted.
    pub guest: Option<GuestFacts>,
    /// What each environment is, in the plan's order, in a study of configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setups: Vec<SetupFacts>,
    /// What the guests cost without a load, each sitting's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleBaseline>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Provenance {
    /// Adds notes, each once.
    pub fn add_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Reads a `run.json`.
///
/// # Errors
/// The text is not such a file, or a later version wrote it.
pub fn parse_provenance(text: &str) -> Result<Provenance, RecordError> {
    let damaged =
        |error: serde_json::Error| RecordError::Damaged { line: error.line(), why: error.to_string() };
    let value: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
    check_format(&value)?;
    serde_json::from_value(value).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `run.json` of before there were studies of configurations.
    const OLD: &str = r#"{"format":1,"kind":"native-vs-vm","version":"0.1.0","command":["virtbench"],
        "started_unix_s":1,"plan":{"grid":"quick","blocks_bytes":[4096],"read_percents":[0],
        "random_percents":[0],"repetitions":1,"outstanding":16,"workers":1,"ramp_ns":0,"time_ns":1,
        "size_bytes":1048576,"environments":["native","vm"],"seed":1},"host":{"kernel":"6","distribution":"d",
        "cpu":"c","processors":2,"memory_bytes":1,"hypervisor":null,"disk":{"filesystem":"ext4","device":null,
        "rotational":null,"scheduler":null,"write_cache":null}},"guest":null,"notes":[]}"#;

    #[test]
    fn run_folders_from_before_configurations_are_read() {
        let old = parse_provenance(OLD).unwrap();
        assert_eq!(old.kind, RunKind::NativeVsVm);
        assert!(old.setups.is_empty() && old.idle.is_empty() && old.together.is_none());
        assert!(old.predictions.is_none());
    }
}
