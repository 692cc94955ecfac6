//! A folder of this host in which a machine of a study keeps files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use virtbench_mark::{FolderMarkError, Mark, Marked, RunId, mark_folder, read_folder_mark};

use crate::disks::disk::{DiskError, hold};
use crate::disks::named_folder::NamedFolder;
use virtbench_runs::Held;

/// What its mark is for.
const PURPOSE: &str = "study-files";
/// How names of such folders begin and end.
const AFFIXES: (&str, &str) = ("virtbench-", ".files");
/// Runs of one name that may keep files in one folder at a time.
const MOST: usize = 1_000;

/// A folder that is marked as ours and held against other runs. Dropping it removes it; only a kill leaves it, and the next run that
/// keeps files beside it removes it, whatever that is called.
#[derive(Debug)]
pub(crate) struct StudyFolder {
    path: PathBuf,
    _lock: Held,
    _parent: NamedFolder,
}

impl StudyFolder {
    /// Makes an empty folder for `name` in `parent`, which is made too, but not in what is not there, and removes what killed runs left
    /// there. Where something else has its name, such as the folder of another run, it gets a number.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(parent: &Path, name: &str) -> Result<Self, DiskError> {
        let failed = |source| DiskError::Folder { path: parent.to_owned(), source };
        let made = NamedFolder::make(parent).map_err(failed)?;
        sweep(made.path()).map_err(failed)?;
        let (before, after) = AFFIXES;
        for number in 1..=MOST {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            let path = made.path().join(format!("{before}{name}{number}{after}"));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(failed)?,
            }
            // Held before it is marked: what is marked and not held is left over.
            let lock = hold(&path)?;
            mark_folder(&path, &Mark::new(RunId::new_random(), PURPOSE)).map_err(cause).map_err(failed)?;
            return Ok(Self { _lock: lock, path, _parent: made });
        }
        Err(failed(io::Error::other(format!("{MOST} folders are called {before}{name}{after}"))))
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

/// Removes the folders that killed runs left. The kernel let go of them with their process, in whatever container that was.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let mut path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !(name.starts_with(AFFIXES.0) && name.ends_with(AFFIXES.1)) {
            continue;
        }
        let is_ours =
            |path: &Path| matches!(read_folder_mark(path), Ok(Some(mark)) if mark.purpose() == PURPOSE);
        // One that another run removes at this moment is gone as well.
        let Ok(Some(_held)) = Held::take(&path) else { continue };
        if is_ours(&path) && path.remove().is_err() && path.exists() {
            return Err(io::Error::other(format!("what a killed run left in {} stays", path.display())));
        }
    }
    Ok(())
}

fn cause(error: FolderMarkError) -> io::Error {
    match error {
        FolderMarkError::Io { source, .. } => source,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(parent: &Path) -> Vec<String> {
        let names = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_kill_left_is_removed_whatever_the_next_run_is_called_and_strangers_stay() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join("virtbench-run.files");
        fs::create_dir_all(left.join("deep")).unwrap();
        fs::write(left.join("deep/database.ext4"), "x").unwrap();
        mark_folder(&left, &Mark::new(RunId::new_random(), PURPOSE)).unwrap();
        for (name, purpose) in [("virtbench-a.files", None), ("virtbench-b.files", Some("work"))] {
            fs::create_dir(temp.path().join(name)).unwrap();
            fs::write(temp.path().join(name).join("notes"), "x").unwrap();
            if let Some(purpose) = purpose {
                mark_folder(&temp.path().join(name), &Mark::new(RunId::new_random(), purpose)).unwrap();
            }
        }
        let folder = StudyFolder::make(temp.path(), "other").unwrap();
        assert_eq!(files(temp.path()), ["virtbench-a.files", "virtbench-b.files", "virtbench-other.files"]);
        let beside = StudyFolder::make(temp.path(), "a").unwrap();
        assert!(
            beside.path().ends_with("virtbench-a-2.files")
                && temp.path().join("virtbench-a.files/notes").exists()
        );
        drop((folder, beside));
        assert_eq!(files(temp.path()), ["virtbench-a.files", "virtbench-b.files"]);
    }

    #[test]
    fn two_runs_of_one_name_do_not_meet() {
        let temp = tempfile::tempdir().unwrap();
        let first = StudyFolder::make(temp.path(), "run").unwrap();
        let second = StudyFolder::make(temp.path(), "run").unwrap();
        assert_ne!(first.path(), second.path());
        assert!(first.path().exists() && second.path().exists());
    }
}
