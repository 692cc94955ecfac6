//! The folder that a remote agent works in.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Its name. What lies in a folder of this name was made by an agent.
const NAME: &str = ".virtbench-agent";
/// An agent that ends may remove the folder that another one has just found.
const ATTEMPTS: usize = 8;

/// A folder that nobody else uses and that goes with this value. One that a killed agent left is emptied and used.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    lock: File,
}

impl WorkFolder {
    /// Makes it in `parent`, which is made too if need be; one for each `name`.
    ///
    /// # Errors
    /// It cannot be made or emptied, belongs to somebody else, or another agent uses it; in words for the user.
    pub(crate) fn make(parent: &Path, name: Option<&str>) -> Result<Self, String> {
        let fails = |error: io::Error| format!("cannot use {}: {error}", parent.display());
        fs::create_dir_all(parent).map_err(fails)?;
        // Absolute, because the agent changes its own directory.
        let path = parent.canonicalize().map_err(fails)?.join(folder_name(name)?);
        let fails = |error: io::Error| format!("cannot use {}: {error}", path.display());
        for _ in 0..ATTEMPTS {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fails(error)),
                _ => {}
            }
            let Some(lock) = open(&path).map_err(fails)? else { continue };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(format!(
                    "{} is in use by another run of virtbench: wait for it, or name another folder of this machine",
                    path.display()
                ));
            }
            if !is_same(&path, &lock) {
                continue;
            }
            empty(&path).map_err(fails)?;
            return Ok(Self { path, lock });
        }
        Err(format!("{} is made and removed by others all the time", path.display()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// The folder's name for an agent of this name.
fn folder_name(name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else { return Ok(NAME.to_owned()) };
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    {
        return Err(format!("{name:?} is no name for an agent's folder"));
    }
    Ok(format!("{NAME}-{name}"))
}

/// Where an agent of another name works, beside one in `folder`; nothing where no agent has such a name.
pub(crate) fn beside(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.parent()?.join(folder_name(Some(name)).ok()?))
}

/// The folder itself, opened; nothing if it has just gone.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(folder) => {
            let folder = File::from(folder);
            if folder.metadata()?.uid() == rustix::process::geteuid().as_raw() {
                return Ok(Some(folder));
            }
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"))
        }
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the path still leads to the folder that is locked.
fn is_same(path: &Path, lock: &File) -> bool {
    let identity = |facts: fs::Metadata| (facts.dev(), facts.ino());
    let there = fs::symlink_metadata(path).map(identity).ok();
    there.is_some() && there == lock.metadata().map(identity).ok()
}

fn empty(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // Of the entry itself: nothing is followed.
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_used_by_one_agent_and_goes_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join("made/too");
        let folder = WorkFolder::make(&parent, None).unwrap();
        fs::write(folder.path().join("disk"), "x").unwrap();
        let refused = WorkFolder::make(&parent, None).unwrap_err();
        assert!(refused.contains("in use by another run"), "{refused}");
        let other = WorkFolder::make(&parent, Some("vm2")).unwrap();
        assert!(other.path() != folder.path() && WorkFolder::make(&parent, Some("vm2")).is_err());
        assert!(WorkFolder::make(&parent, Some("../vm3")).is_err());
        drop((folder, other));
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_agent_left_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join(NAME);
        fs::create_dir_all(left.join("tree")).unwrap();
        fs::write(left.join("disk"), "x").unwrap();
        let folder = WorkFolder::make(temp.path(), None).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("theirs"), "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), temp.path().join(NAME)).unwrap();
        assert!(WorkFolder::make(temp.path(), None).is_err());
        assert!(elsewhere.path().join("theirs").exists());
    }
}
