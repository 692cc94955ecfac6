//! A new file system for this host's own runs, so that they find what a VM finds on its new disk, and not a file system that
//! has been in use for years.
//!
//! ```text
//! folder ── ext4 or XFS ── loop device ── file beside the folder
//! ```
//!
//! It is mounted where only this thread, those that it starts later and their processes see it ([`see_alone`]); with the last
//! of them the kernel takes it away, also after a kill.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use thiserror::Error;
use virtbench_agent::enclosure::{LoopCache, LoopDevice, LoopError};

use crate::filesystem::{Filesystem, FilesystemError, fill_holes, make_filesystem_with};

/// Why there is none.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum OwnFilesystemError {
    /// It cannot be made.
    #[error(transparent)]
    Make(#[from] FilesystemError),
    /// There is no loop device.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// It cannot be mounted.
    #[error("{action}: {source}")]
    Mount {
        /// What failed.
        action: String,
        source: io::Error,
    },
}

/// Lets this thread and those that it starts from now on see mounts of their own. Once is enough.
///
/// # Errors
/// Root is needed.
pub fn see_alone() -> Result<(), OwnFilesystemError> {
    let failed = |action: &str, source: rustix::io::Errno| OwnFilesystemError::Mount {
        action: action.to_owned(),
        source: source.into(),
    };
    // SAFETY: a mount namespace of one's own closes no descriptor and shares no memory anew.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(|error| failed("mounts of one's own cannot be had (root is needed)", error))?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| failed("mounts cannot be kept from others", error))
}

/// A mounted file system; unmounted when this goes.
#[derive(Debug)]
pub struct OwnFilesystem {
    folder: PathBuf,
    image: PathBuf,
}

impl OwnFilesystem {
    /// Makes and mounts one of so many bytes on `folder`, which is made, with a copy of everything in `from` (ext4 only). Its
    /// file is `folder` with `.img` behind its name, whole from the beginning, and loses that name once it is mounted, so that a
    /// kill leaves no more than an empty folder. Call [`see_alone`] before.
    ///
    /// # Errors
    /// Root is needed, a loop device, and the file system's program; nothing is left behind.
    pub fn mount(
        folder: &Path,
        size_bytes: u64,
        filesystem: Filesystem,
        from: Option<&Path>,
    ) -> Result<Self, OwnFilesystemError> {
        let mut image = folder.as_os_str().to_owned();
        image.push(".img");
        let image = PathBuf::from(image);
        let failed = |action: &str, path: &Path, source: io::Error| OwnFilesystemError::Mount {
            action: format!("{action} {}", path.display()),
            source,
        };
        make_filesystem_with(&image, size_bytes, filesystem, from)?;
        let own = Self { folder: folder.to_owned(), image };
        fill_holes(&own.image).map_err(|error| failed("cannot write", &own.image, error))?;
        fs::create_dir_all(folder).map_err(|error| failed("cannot make", folder, error))?;
        let device = LoopDevice::attach(&own.image, LoopCache::WriteBack)?;
        mount(device.path(), folder, filesystem.name(), MountFlags::NODEV, None)
            .map_err(|error| failed("cannot mount", folder, error.into()))?;
        fs::remove_file(&own.image).map_err(|error| failed("cannot remove", &own.image, error))?;
        Ok(own)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for OwnFilesystem {
    fn drop(&mut self) {
        // Not even if something still uses it; the kernel takes it away with that.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
        let _ = fs::remove_dir(&self.folder);
        // Where it was not mounted.
        let _ = fs::remove_file(&self.image);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether anybody's mounts, those of the process's first thread, have a folder.
    fn is_seen(folder: &Path) -> bool {
        let mounts = fs::read_to_string(format!("/proc/{}/mounts", std::process::id())).unwrap();
        mounts.contains(folder.to_str().unwrap())
    }

    #[test]
    fn it_is_seen_by_its_own_thread_alone_and_leaves_nothing() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let from = parent.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("hello"), "there").unwrap();
        let folder = parent.path().join("own");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                see_alone().unwrap_or_else(|error| panic!("{error}"));
                let own = OwnFilesystem::mount(&folder, 64 << 20, Filesystem::Ext4, Some(&from))
                    .unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(fs::read_to_string(own.folder().join("hello")).unwrap(), "there");
                fs::write(own.folder().join("new"), "file").unwrap();
                let seen = std::process::Command::new("cat").arg(own.folder().join("new")).output().unwrap();
                assert_eq!(seen.stdout, b"file", "children see it");
                assert!(!is_seen(own.folder()));
                assert!(!parent.path().join("own.img").exists(), "a kill would leave nothing");
                drop(own);
                assert!(!folder.exists());
            });
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "only what it began with");
    }

    #[test]
    fn what_cannot_be_made_leaves_nothing() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let folder = parent.path().join("own");
        let error = OwnFilesystem::mount(&folder, 4096, Filesystem::Ext4, None).unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
