//! Where a workload keeps its files.

use std::path::PathBuf;

use virtbench_engine::memory_note;

use crate::mount::Mount;
use crate::runner::{RunError, Storage};

/// The folder of a workload's storage; a disk of our own is mounted for it, which `notes` is told.
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
        Some(Storage::Disk(device)) => {
            let (mount, kind) = Mount::of_device(device)?;
            notes.push(format!("on {kind}, made for this on a disk of its own"));
            let path = mount.path().to_owned();
            Ok((Some(mount), path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_memory_is_said_to_be_so() {
        let mut notes = Vec::new();
        let place = Storage::Path("/dev/shm".into());
        folder(Some(&place), &mut notes).unwrap();
        assert_eq!(notes, ["/dev/shm is on tmpfs: this is memory, not a disk"]);
    }
}
