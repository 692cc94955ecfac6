//! What crosses into a kernel of Linux, which there is no sense in asking of Windows.

use virtbench_workload::SystemSpec;

use crate::runner::{RunError, Runner, Sheet, Storage, Watch};

/// A workload that is refused.
pub(crate) struct System;

impl System {
    /// # Errors
    /// Always: its parts are system calls of Linux.
    pub(crate) fn new(
        _spec: &SystemSpec,
        _place: Option<&Storage>,
        _notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        Err(RunError::Misfit("the workload system is unavailable on Windows: its parts are system calls of Linux; measure memory, cpu or a load".into()))
    }
}

impl Runner for System {
    fn threads(&self) -> u32 {
        1
    }

    fn round(&mut self, _watch: &Watch<'_>, _sheet: &mut Sheet) -> Result<(), RunError> {
        Ok(())
    }
}
