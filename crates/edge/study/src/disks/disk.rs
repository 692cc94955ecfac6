//! The disk that a study loads, one file for the native side and for the guest's, what is on it before anything is measured, and
//! the folders in which a study keeps files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use thiserror::Error;
use virtbench_engine::{Target, TargetError, TargetRequest, is_test_file, memory_note};
use virtbench_lab::{Filesystem, FilesystemError, make_filesystem};
use virtbench_mark::{
    FileMarkError, FolderMarkError, Mark, Marked, RunId, make_marked_file, mark_folder, read_folder_mark,
    remove_marked_file,
};
use virtbench_runs::Held;

/// A disk that cannot be had.
#[derive(Debug, Error)]
pub enum DiskError {
    /// The folder for it cannot be used.
    #[error("cannot use {path} for the test disk: {source}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another run loads it.
    #[error("{path} is in use by another run: wait for it, or choose another --target-dir", path = .0.display())]
    InUse(PathBuf),
    /// A file of its name is not virtbench's to overwrite.
    #[error(transparent)]
    Mark(#[from] FileMarkError),
    /// It cannot have a file system.
    #[error(transparent)]
    Filesystem(#[from] FilesystemError),
    /// It cannot be made, or is not ours.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// A test disk, written whole and held against other runs. Dropping it removes the file; only a
/// kill leaves it, and the next run of the same folder takes it over.
#[derive(Debug)]
pub struct StudyDisk {
    path: PathBuf,
    notes: Vec<String>,
    _lock: Held,
    _folder: NamedFolder,
}

impl StudyDisk {
    /// Makes the disk of the run `run_name`, or takes over what a killed one left.
    /// `on_progress` is told bytes written of bytes in all, and answers whether to go on.
    ///
    /// # Errors
    /// The folder cannot be used, another run holds the disk, or it cannot be written.
    pub fn prepare(
        folder: &Path,
        run_name: &str,
        size_bytes: u64,
        on_progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Self, DiskError> {
        let (folder, path) = place(folder, run_name)?;
        if path.exists() {
            // An empty disk of a killed run; a whole one has the engine's mark, and is taken over.
            remove_marked_file(&path)?;
        }
        let request = TargetRequest {
            path: path.clone(),
            size_bytes: Some(size_bytes),
            direct: true,
            reads: true,
            writes: true,
            allow_overwrite: false,
        };
        let target = Target::open(&request, on_progress)?;
        let lock = hold(&path)?;
        Ok(Self { path, notes: target.notes().to_vec(), _lock: lock, _folder: folder })
    }

    /// Makes the disk with an empty file system on it, which replaces what a killed run left; without
    /// one it has nothing on it, and no block.
    ///
    /// # Errors
    /// The folder cannot be used, another run holds the disk, or there is no such file system here.
    pub fn empty(
        folder: &Path,
        run_name: &str,
        size_bytes: u64,
        filesystem: Option<Filesystem>,
    ) -> Result<Self, DiskError> {
        let (folder, path) = place(folder, run_name)?;
        if is_test_file(&path) {
            fs::remove_file(&path).map_err(|source| DiskError::Folder { path: path.clone(), source })?;
        }
        match filesystem {
            Some(filesystem) => make_filesystem(&path, size_bytes, filesystem)?,
            None => make_marked_file(&path, &Mark::new(RunId::new_random(), "empty-disk"))?
                .set_len(size_bytes)
                .map_err(|source| DiskError::Folder { path: path.clone(), source })?,
        }
        let lock = hold(&path)?;
        Ok(Self { notes: memory_note(&path).into_iter().collect(), path, _lock: lock, _folder: folder })
    }

    /// Where it is; absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a reader of the results should know about it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for StudyDisk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder and the path of a run's disk. What a killed run left is taken over, what a
/// running one holds is not.
fn place(folder: &Path, run_name: &str) -> Result<(NamedFolder, PathBuf), DiskError> {
    let made = NamedFolder::make(folder);
    let made = made.map_err(|source| DiskError::Folder { path: folder.to_owned(), source })?;
    let path = made.path().join(format!("virtbench-{run_name}.img"));
    if path.exists() {
        hold(&path)?;
    }
    Ok((made, path))
}

/// Holds a disk against other runs.
pub(crate) fn hold(path: &Path) -> Result<Held, DiskError> {
    let held = Held::take(path).map_err(|source| DiskError::Folder { path: path.to_owned(), source })?;
    held.ok_or_else(|| DiskError::InUse(path.to_owned()))
}

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

/// What is on a disk before anything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Every block was written.
    Written,
    /// An empty file system, or nothing at all. What is not written takes no room yet.
    Empty(Option<Filesystem>),
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn prepare(folder: &Path) -> Result<StudyDisk, DiskError> {
        StudyDisk::prepare(folder, "test", 1 << 20, |_, _| true)
    }

    #[test]
    fn a_disk_in_memory_is_said_to_be_so() {
        let temp = TempDir::new_in("/dev/shm").unwrap();
        let disks =
            [prepare(temp.path()).unwrap(), StudyDisk::empty(temp.path(), "empty", 4096, None).unwrap()];
        for disk in disks {
            assert!(
                disk.notes()[0].ends_with("is on tmpfs: this is memory, not a disk"),
                "{:?}",
                disk.notes()
            );
        }
    }

    #[test]
    fn a_disk_is_held_while_it_is_used_and_gone_afterwards() {
        let temp = TempDir::new().unwrap();
        let disk = prepare(temp.path()).unwrap();
        assert_eq!(fs::metadata(disk.path()).unwrap().len(), 1 << 20);
        assert!(matches!(prepare(temp.path()), Err(DiskError::InUse(_))));
        drop(disk);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_of_a_stranger_with_the_name_of_a_run_s_disk_stays() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().canonicalize().unwrap().join("virtbench-test.img");
        fs::write(&path, "precious").unwrap();
        let empty = |filesystem| StudyDisk::empty(temp.path(), "test", 32 << 20, filesystem);
        for refused in [prepare(temp.path()), empty(None), empty(Some(Filesystem::Ext4))] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("was not made by virtbench"), "{said}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn an_empty_disk_of_a_killed_run_is_replaced_and_so_is_a_written_one() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().canonicalize().unwrap().join("virtbench-test.img");
        let leave = |disk: StudyDisk| {
            disk._lock.let_go();
            std::mem::forget(disk);
        };
        leave(prepare(temp.path()).unwrap());
        leave(StudyDisk::empty(temp.path(), "test", 4096, None).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
        // As if the process had ended.
        fs::remove_file(&path).unwrap();
        make_marked_file(&path, &left_over()).unwrap();
        drop(prepare(temp.path()).unwrap());
        assert!(!path.exists());
    }

    fn left_over() -> Mark {
        let text = Mark::new(RunId::new_random(), "empty-disk").to_string();
        let (start, _) = text.rsplit_once('=').unwrap();
        Mark::parse(&format!("{start}=1")).unwrap()
    }

    #[test]
    fn what_a_killed_run_left_is_taken_over() {
        let temp = TempDir::new().unwrap();
        let left = prepare(temp.path()).unwrap();
        let made = fs::metadata(left.path()).unwrap();
        // A kill drops nothing but lets go of the file.
        left._lock.let_go();
        let taken = prepare(temp.path()).unwrap();
        let found = fs::metadata(taken.path()).unwrap();
        assert_eq!(made.modified().unwrap(), found.modified().unwrap());
        std::mem::forget(left);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let temp = TempDir::new().unwrap();
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        let error = prepare(&file.join("folder")).unwrap_err().to_string();
        assert!(error.contains("file/folder"), "{error}");
    }

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
