//! Where the daemon's sockets are: in a folder of their own among temporary files, because their names must be short.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

use super::FenceError;
use crate::disks::disk::hold;
use virtbench_runs::Held;

const PREFIX: &str = "virtbench-fence-";
/// Somebody who cleans up may take a new folder for one left behind.
const ATTEMPTS: usize = 8;

/// A folder that goes with its run. One that a killed run has left is removed by the next run of the same user.
#[derive(Debug)]
pub(super) struct SocketFolder {
    folder: TempDir,
    /// Of the folder itself: as long as somebody uses it.
    _lock: Held,
}

impl SocketFolder {
    /// # Errors
    /// None can be made in `parent`.
    pub(super) fn new(parent: &Path) -> Result<Self, FenceError> {
        let fails = |source| FenceError::File { path: parent.to_owned(), source };
        remove_abandoned(parent);
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(fails)?;
            if let Ok(lock) = hold(folder.path())
                && folder.path().exists()
            {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(fails(io::ErrorKind::ResourceBusy.into()))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whatever cannot be removed stays, and harms nobody.
fn remove_abandoned(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself: nothing is followed.
        let folder = || entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == own);
        if ours
            && folder()
            && let Ok(_lock) = hold(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_used_is_not() {
        let parent = TempDir::new().unwrap();
        let left = parent.path().join("virtbench-fence-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("fence.toml"), "x").unwrap();
        let other = parent.path().join("somebody-else");
        fs::create_dir(&other).unwrap();
        let first = SocketFolder::new(parent.path()).unwrap();
        let second = SocketFolder::new(parent.path()).unwrap();
        assert!(!left.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
