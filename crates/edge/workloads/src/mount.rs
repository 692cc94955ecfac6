//! A file system on a disk that was made for this, for as long as a workload needs it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::runner::RunError;

/// Where it is mounted; nothing else runs where a disk is ours.
const WHERE: &str = "/mnt";

/// A mounted file system. It is unmounted, and thereby synced, when this value goes.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts what is on the device.
    ///
    /// # Errors
    /// There is no file system that is known, or the kernel cannot mount it.
    pub(crate) fn of_device(device: &Path) -> Result<(Self, &'static str), RunError> {
        let fail = |what: &str, error: &dyn std::fmt::Display| {
            RunError::Storage(format!("cannot {what} {}: {error}", device.display()))
        };
        let kind =
            File::open(device).and_then(|file| filesystem(&file)).map_err(|error| fail("read", &error))?;
        let Some(kind) = kind else {
            return Err(RunError::Storage(format!(
                "{} holds neither ext4 nor XFS: have it made with mkfs.ext4 or mkfs.xfs",
                device.display()
            )));
        };
        fs::create_dir_all(WHERE).map_err(|error| fail("make a place for", &error))?;
        mount(device, WHERE, kind, MountFlags::NOATIME, None).map_err(|error| fail("mount", &error))?;
        Ok((Self(WHERE.into()), kind))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if unmount(&self.0, UnmountFlags::empty()).is_err() {
            // A thread that still waits for the disk keeps it busy; it goes when that one does.
            let _ = unmount(&self.0, UnmountFlags::DETACH);
        }
    }
}

/// Which file system a device holds, by its magic number.
fn filesystem(file: &File) -> std::io::Result<Option<&'static str>> {
    let mut block = [0; 2048];
    file.read_exact_at(&mut block, 0)?;
    // The superblock of ext2 and its heirs stands at 1024, its magic number 56 bytes into it.
    Ok(if block.starts_with(b"XFSB") {
        Some("xfs")
    } else if block[1080..1082] == [0x53, 0xef] {
        Some("ext4")
    } else {
        None
    })
}

/// What programs expect to be there, and a guest of ours has not.
pub(crate) fn furnish() -> io::Result<()> {
    for folder in ["/tmp", "/dev/shm", "/run", "/var/run"] {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))?;
    }
    if !is_mounted("/dev/shm")? {
        mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::empty(), None)?;
    }
    Ok(())
}

fn is_mounted(place: &str) -> io::Result<bool> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1).is_some_and(|at| Path::new(at) == Path::new(place))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_their_magic_numbers() {
        let file = tempfile::tempfile().unwrap();
        assert!(filesystem(&file).is_err());
        file.set_len(4096).unwrap();
        assert_eq!(filesystem(&file).unwrap(), None);
        file.write_all_at(&[0x53, 0xef], 1080).unwrap();
        assert_eq!(filesystem(&file).unwrap(), Some("ext4"));
        file.write_all_at(b"XFSB", 0).unwrap();
        assert_eq!(filesystem(&file).unwrap(), Some("xfs"));
    }

    #[test]
    fn a_disk_without_one_is_refused_with_what_to_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let error = Mount::of_device(file.path()).unwrap_err().to_string();
        assert!(error.contains("mkfs.ext4"), "{error}");
    }
}
