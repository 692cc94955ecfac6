//! Where workloads on files work: a folder that is there, as Windows mounts no disk of ours.

use std::path::PathBuf;

use virtbench_engine::memory_note;

use crate::runner::{RunError, Storage};

/// A file system that was mounted: there is none.
#[derive(Debug)]
pub(crate) enum Mount {}

/// The folder of a workload's storage.
pub(crate) fn folder(
    place: Option<&Storage>,
    notes: &mut Vec<String>,
) -> Result<(Option<Mount>, PathBuf), RunError> {
    match place {
        None => Err(RunError::Storage("this workload needs a directory: give --dir".into())),
        Some(Storage::Path(path)) => {
            notes.extend(memory_note(path));
            Ok((None, path.clone()))
        }
        Some(Storage::Disk(device)) => Err(RunError::Storage(format!(
            "{} cannot be mounted for a workload on Windows: name a folder",
            device.display()
        ))),
    }
}

/// What programs expect to be there, which is the machine's own affair here.
#[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
pub(crate) fn furnish() -> std::io::Result<()> {
    Ok(())
}
