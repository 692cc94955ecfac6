//! What a model file says.

use virtbench_workload::files::FileModel;

/// A model, and what else its file says.
#[derive(Debug, Clone, PartialEq)]
pub struct FilebenchFile {
    /// The model.
    pub model: FileModel,
    /// How long it asks to be run, in nanoseconds.
    pub run_ns: Option<u64>,
    /// What was left out because it does not change the load, and what differs from Filebench.
    pub notes: Vec<String>,
}
