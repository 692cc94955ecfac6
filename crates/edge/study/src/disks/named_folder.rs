//! A folder that a user names for what is measured.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folders that this process has made, until they are removed again.
static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A folder that is there for as long as this value is. One that was made for it goes with the last such value, if nothing else is in it.
#[derive(Debug)]
pub(crate) struct NamedFolder(PathBuf);

impl NamedFolder {
    /// Makes the folder, if it is not there. Its parents are not made: a mistyped mount point would have another disk measured.
    ///
    /// # Errors
    /// It cannot be made, or its parent is not there.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        match fs::create_dir(path) {
            Ok(()) => {
                let whole = path.canonicalize()?;
                MADE.lock().unwrap_or_else(PoisonError::into_inner).insert(whole);
            }
            Err(_) if path.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::new(
                    error.kind(),
                    "the folder that it is to be in is not there: make it first",
                ));
            }
            Err(error) => return Err(error),
        }
        // Absolute, because neither QEMU nor an agent need share our working directory.
        path.canonicalize().map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for NamedFolder {
    fn drop(&mut self) {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(&self.0) && fs::remove_dir(&self.0).is_ok() {
            made.remove(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_made_goes_with_the_last_use_and_one_that_was_there_stays() {
        let temp = tempfile::tempdir().unwrap();
        let new = temp.path().join("new");
        let (one, two) = (NamedFolder::make(&new).unwrap(), NamedFolder::make(&new).unwrap());
        fs::write(new.join("of the second"), "x").unwrap();
        drop(one);
        fs::remove_file(new.join("of the second")).unwrap();
        drop(two);
        assert!(!new.exists());
        drop(NamedFolder::make(temp.path()).unwrap());
        assert!(temp.path().exists());
    }

    #[test]
    fn parents_of_a_mistyped_folder_are_not_made() {
        let temp = tempfile::tempdir().unwrap();
        let error = NamedFolder::make(&temp.path().join("mnt/nvme")).unwrap_err();
        assert!(error.to_string().contains("make it first"), "{error}");
        assert!(!temp.path().join("mnt").exists());
    }
}
