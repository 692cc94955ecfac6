//! The folder in which all files of a load lie. It is ours, or it is not touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use virtbench_host::free_bytes;

use crate::files::board::FilesError;
use crate::files::calls;

/// The folder's name in the directory that the user named.
const NAME: &str = "virtbench-files";
/// The file in it that says whose it is. It is locked while a load runs.
const MARK: &str = ".made-by-virtbench";

/// A folder of our own. It and all it holds are removed when this value goes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The user's directory, where it was made too.
    made_parent: Option<PathBuf>,
    /// Held as long as this value is there.
    lock: Option<File>,
}

impl Folder {
    /// Makes `virtbench-files` in `directory`, and that directory if it does not exist. What a run that
    /// was killed left there is removed first.
    ///
    /// # Errors
    /// There is such a folder and it is not ours, or another run uses it, or it cannot be made.
    pub fn make(directory: &Path) -> Result<Self, FilesError> {
        let made_parent = (!directory.exists()).then(|| directory.to_owned());
        fs::create_dir_all(directory).map_err(FilesError::io("make", directory))?;
        let path = directory.join(NAME);
        let mark = path.join(MARK);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&path).map_err(FilesError::io("make", &path))?;
            }
            Err(error) => return Err(FilesError::io("look at", &path)(error)),
            Ok(facts) if facts.is_dir() && mark.is_file() => {}
            Ok(_) => return Err(FilesError::Foreign(path)),
        }
        let lock = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&mark)
            .map_err(FilesError::io("make", &mark))?;
        if calls::lock_alone(&lock).is_err() {
            return Err(FilesError::Busy(path));
        }
        let folder = Self { path, made_parent, lock: Some(lock) };
        folder.empty().map_err(FilesError::io("clear", &folder.path))?;
        let text = b"All files beside this one are made and removed by virtbench.\n";
        let written = folder.lock.iter().try_for_each(|mut lock| lock.write_all(text));
        written.map_err(FilesError::io("write", &mark))?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything in it except its mark.
    pub(crate) fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARK {
                continue;
            }
            // Neither follows symbolic links.
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Bytes that its file system has free for us.
    pub(crate) fn free_bytes(&self) -> Result<u64, FilesError> {
        free_bytes(&self.path).map_err(FilesError::io("look up the free room at", &self.path))
    }

    /// Whether there is room for so many bytes.
    pub(crate) fn check_room(&self, wanted_bytes: u64) -> Result<(), FilesError> {
        let free_bytes = self.free_bytes()?;
        if free_bytes < wanted_bytes {
            return Err(FilesError::Full { path: self.path.clone(), wanted_bytes, free_bytes });
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The mark goes last: what a kill leaves behind stays recognisable.
        if self.empty().is_ok() {
            calls::remove_locked(&self.path.join(MARK), self.lock.take());
            let _ = fs::remove_dir(&self.path);
        }
        if let Some(parent) = &self.made_parent {
            // Only when it is empty.
            let _ = fs::remove_dir(parent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_all_it_holds_and_leaves_the_rest() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("mine"), "x").unwrap();
        let folder = Folder::make(place.path()).unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), "x").unwrap();
        drop(folder);
        let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["mine"]);
    }

    #[test]
    fn a_directory_that_did_not_exist_is_gone_again() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        drop(Folder::make(&directory).unwrap());
        assert!(!directory.exists());
    }

    #[test]
    fn a_foreign_folder_is_refused_and_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let foreign = place.path().join(NAME);
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("precious"), "x").unwrap();
        assert!(matches!(Folder::make(place.path()), Err(FilesError::Foreign(_))));
        assert!(foreign.join("precious").exists());
        fs::remove_dir_all(&foreign).unwrap();
        std::os::unix::fs::symlink(place.path(), &foreign).unwrap();
        fs::write(place.path().join(MARK), "x").unwrap();
        assert!(matches!(Folder::make(place.path()), Err(FilesError::Foreign(_))));
    }

    #[test]
    fn what_a_killed_run_left_is_cleared_and_a_second_run_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::make(place.path()).unwrap();
        assert!(matches!(Folder::make(place.path()), Err(FilesError::Busy(_))));
        fs::write(folder.path().join("left"), "x").unwrap();
        let lock = folder.lock.as_ref().unwrap().try_clone().unwrap();
        std::mem::forget(folder);
        drop(lock);
        // The forgotten descriptor still holds the lock: only the process's end would let it go.
        assert!(matches!(Folder::make(place.path()), Err(FilesError::Busy(_))));
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(other.path().join(NAME)).unwrap();
        fs::write(other.path().join(NAME).join(MARK), "").unwrap();
        fs::write(other.path().join(NAME).join("left"), "x").unwrap();
        let folder = Folder::make(other.path()).unwrap();
        assert!(!folder.path().join("left").exists());
    }
}
