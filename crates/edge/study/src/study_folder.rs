//! A folder of this host in which a machine of a study keeps files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::{DiskError, hold};
use crate::held::Held;

/// A folder that is held against other runs. Dropping it removes it; only a kill leaves it, and the next run of the same name
/// takes its place.
#[derive(Debug)]
pub(crate) struct StudyFolder {
    path: PathBuf,
    _lock: Held,
}

impl StudyFolder {
    /// Makes an empty folder for `name` in `parent`, which is made too.
    ///
    /// # Errors
    /// It cannot be made, or another run holds it.
    pub(crate) fn make(parent: &Path, name: &str) -> Result<Self, DiskError> {
        let failed = |source| DiskError::Folder { path: parent.to_owned(), source };
        fs::create_dir_all(parent).map_err(failed)?;
        // Absolute, because the agent need not share our working directory.
        let path = parent.canonicalize().map_err(failed)?.join(format!("virtbench-{name}.files"));
        if path.exists() {
            let left = hold(&path)?;
            fs::remove_dir_all(&path).map_err(failed)?;
            drop(left);
        }
        fs::create_dir(&path).map_err(failed)?;
        Ok(Self { _lock: hold(&path)?, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StudyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_emptied_of_what_a_kill_left_and_gone_afterwards() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join("virtbench-run-vm1.files");
        fs::create_dir_all(left.join("deep")).unwrap();
        let folder = StudyFolder::make(temp.path(), "run-vm1").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(StudyFolder::make(temp.path(), "run-vm1"), Err(DiskError::InUse(_))));
        drop(folder);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
