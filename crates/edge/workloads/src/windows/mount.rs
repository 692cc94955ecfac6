//! File systems on disks of ours: Windows has none.

use std::path::Path;

use crate::runner::RunError;

/// A file system that was mounted: there is none.
#[derive(Debug)]
pub(crate) enum Mount {}

impl Mount {
    /// # Errors
    /// Always: Windows mounts no disk of ours.
    pub(crate) fn of_device(device: &Path) -> Result<(Self, &'static str), RunError> {
        Err(RunError::Storage(format!(
            "{} cannot be mounted for a workload on Windows: name a folder",
            device.display()
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }
}

/// What programs expect to be there, which is the machine's own affair here.
#[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
pub(crate) fn furnish() -> std::io::Result<()> {
    Ok(())
}
