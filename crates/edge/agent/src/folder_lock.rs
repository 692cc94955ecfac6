//! The lock on a folder of which there is one user at a time: on the folder itself.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};

/// A folder, opened.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl FolderLock {
    /// The folder itself, opened; nothing if it has just gone.
    ///
    /// # Errors
    /// It belongs to another user, or cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
            Ok(folder) => {
                let folder = File::from(folder);
                if folder.metadata()?.uid() == rustix::process::geteuid().as_raw() {
                    return Ok(Some(Self(folder)));
                }
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock; answers whether nobody else has it.
    pub(crate) fn take(&self) -> bool {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Whether the path still leads to the folder that is locked.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        let identity = |facts: fs::Metadata| (facts.dev(), facts.ino());
        let there = fs::symlink_metadata(path).map(identity).ok();
        there.is_some() && there == self.0.metadata().map(identity).ok()
    }

    /// Lets others have it.
    pub(crate) fn release(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Makes a folder that only this user can look into.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes it possible to remove a folder that this process works in: Linux needs nothing for that.
pub(crate) fn leave(_path: &Path) {}

/// Removes what other programs may have open: Linux does not mind.
///
/// # Errors
/// Those of the removal.
pub(crate) fn remove_when_free(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    remove()
}
