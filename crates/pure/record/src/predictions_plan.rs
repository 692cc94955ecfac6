//! Applications whose throughput in a VM is to be predicted and then measured.

use serde::{Deserialize, Serialize};

/// Which set of applications a file of cases holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CaseSet {
    /// Ideas for the model were compared on these: their errors are smaller than those of others.
    Tuning,
    /// Written down before the first of them was predicted: their errors are what to expect.
    HeldOut,
}

impl PredictionsPlan {
    /// Where applications are predicted for: a storage, or the only VM.
    pub fn subjects(&self) -> impl Iterator<Item = Option<&str>> {
        let storages = self.storages.iter().skip(1).map(|storage| Some(storage.as_str()));
        storages.chain(self.storages.is_empty().then_some(None))
    }

    /// What they run on while they are profiled.
    #[must_use]
    pub fn reference(&self) -> &str {
        self.storages.first().map_or("native", |storage| storage)
    }
}

impl CaseSet {
    /// Its name within a sentence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tuning => "tuning",
            Self::HeldOut => "held-out",
        }
    }
}

/// An application, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, also of files: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What is run, in a folder of its own.
    pub command: Vec<String>,
    /// What its throughput is read from; a workload of virtbench's own needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Threads or processes that work at once.
    pub workers: u32,
    /// Files and folders that it needs in the VM besides its libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// A shell script that makes what it begins with, in an empty folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
}

/// What a run of predictions set out to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionsPlan {
    /// Which set the cases are, where their file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<CaseSet>,
    /// The applications.
    pub cases: Vec<Case>,
    /// Trials of each.
    pub trials: u32,
    /// Runs in a trial on either side, of which the one in the middle counts.
    pub runs: u32,
    /// The method of prediction; the one that fits where there is none.
    pub method: Option<String>,
    /// Virtual processors of the VM.
    pub vcpus: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Adapter of its disk, with what is set about it.
    pub adapter: String,
    /// Storages of VMs: applications run on the first, and are predicted for each of the others. None where they run natively, and are
    /// predicted for a VM with that adapter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storages: Vec<String>,
    /// Size of its disk, in bytes.
    pub size_bytes: u64,
    /// File system on its disk.
    pub filesystem: String,
    /// What was to execute its instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// How long one run may take there, in nanoseconds.
    pub limit_ns: u64,
}
