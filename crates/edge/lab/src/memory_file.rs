//! Files that live in memory: they have no name, so nothing is left behind however a run ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// A file in memory that nobody can change any more.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    fd: OwnedFd,
}

impl MemoryFile {
    /// Keeps `contents`, which may be a program; `name` serves for diagnosis only.
    pub(crate) fn new(name: &str, contents: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 do not know EXEC and allow execution anyway.
        let fd = memfd_create(name, flags | MemfdFlags::EXEC).or_else(|error| match error {
            Errno::INVAL => memfd_create(name, flags),
            error => Err(error),
        })?;
        let mut file = File::from(fd);
        file.write_all(contents)?;
        let others = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        // WRITE is refused as busy while the kernel holds one of the pages for a purpose of its own. Nobody has the file mapped
        // yet, so that FUTURE_WRITE says as much; kernels before 5.1 do not know it.
        fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | others).or_else(|error| match error {
            Errno::INVAL => fcntl_add_seals(&file, SealFlags::WRITE | others),
            error => Err(error),
        })?;
        Ok(Self { fd: file.into() })
    }

    /// A descriptor to be inherited by a child under the same number, and the path by which the
    /// child then opens this file.
    pub(crate) fn lend(&self) -> io::Result<(OwnedFd, PathBuf)> {
        let fd = self.fd.try_clone()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        Ok((fd, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_kept_can_be_read_and_not_changed() {
        let file = MemoryFile::new("test", b"contents").unwrap();
        let (_fd, path) = file.lend().unwrap();
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "contents");
        assert!(File::options().write(true).open(&path).unwrap().write_all(b"x").is_err());
    }
}
