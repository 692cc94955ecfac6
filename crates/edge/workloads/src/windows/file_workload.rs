//! Workloads on a file system, which the agent of Windows does not run.

use virtbench_workload::files::FileSpec;

use crate::runner::{RunError, Runner, Storage, Watch};
use crate::sheet::Sheet;

/// A workload that is refused.
pub(crate) struct Files;

impl Files {
    /// # Errors
    /// Always: it works by calls of POSIX.
    pub(crate) fn new(
        _files: &FileSpec,
        _seed: u64,
        _place: Option<&Storage>,
        _is_over: &dyn Fn() -> bool,
        _notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        Err(RunError::Misfit(
            "workloads on a file system are unavailable on Windows: measure memory, cpu or a load".into(),
        ))
    }
}

impl Runner for Files {
    fn threads(&self) -> u32 {
        1
    }

    fn round(&mut self, _watch: &Watch<'_>, _sheet: &mut Sheet) -> Result<(), RunError> {
        Ok(())
    }
}
