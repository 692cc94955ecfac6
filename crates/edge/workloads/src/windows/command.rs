//! Programs of users, which the agent of Windows does not run.

use virtbench_workload::CommandSpec;

use crate::runner::{RunError, Runner, Storage, Watch};
use crate::sheet::Sheet;

/// A command that is refused.
pub(crate) struct Program;

impl Program {
    /// # Errors
    /// Always: there is no control group or process group by which all that it starts could be ended.
    pub(crate) fn new(
        _spec: &CommandSpec,
        _place: Option<&Storage>,
        _notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        Err(RunError::Misfit(
            "the workload command is unavailable on Windows: run it on a Linux machine".into(),
        ))
    }
}

impl Runner for Program {
    fn threads(&self) -> u32 {
        1
    }

    fn round(&mut self, _watch: &Watch<'_>, _sheet: &mut Sheet) -> Result<(), RunError> {
        Ok(())
    }
}
