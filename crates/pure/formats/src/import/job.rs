//! What a file asks for.

use serde::{Deserialize, Serialize};
use virtbench_workload::LoadSpec;

use super::remark::Remark;
use super::schedule::Schedule;

/// One job of a file: one load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedJob {
    /// Its name in the file.
    pub name: String,
    /// The load. Its region is `size_bytes`, or a stand-in of 1 GiB where that is absent: the
    /// target's own size takes its place.
    pub load: LoadSpec,
    /// The target, as the file names it.
    pub target: Option<String>,
    /// How much of the target is used from its start, in bytes; the whole of it where absent.
    pub size_bytes: Option<u64>,
    /// Jobs of one group run at the same time in the tool the file was written for; groups run one
    /// after another, from 0.
    pub group: u32,
    /// When it starts and what ends it, beside that.
    #[serde(default)]
    pub schedule: Schedule,
}

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportedLoad {
    /// The jobs, in the file's order; at least one.
    pub jobs: Vec<ImportedJob>,
    /// What differs between the tool the file was written for and this one, and what was left out
    /// because it changes no load.
    pub notes: Vec<String>,
    /// What was not understood; always empty unless the import was lenient.
    pub ignored: Vec<Remark>,
}
