//! The disk that a study loads: one file, for the native side and for the guest's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_engine::{Target, TargetError, TargetRequest, is_test_file, memory_note};
use virtbench_lab::{Filesystem, FilesystemError, make_filesystem};
use virtbench_mark::{FileMarkError, Mark, RunId, make_marked_file, remove_marked_file};

use crate::disks::named_folder::NamedFolder;
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

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

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
}
