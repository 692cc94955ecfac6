//! A test file that is being written.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, statvfs};

use super::guard;
use crate::target::error::TargetError;

/// It is locked until it is dropped.
pub(in crate::target) struct Partial {
    file: File,
    /// Past the page cache where possible: a gigabyte of dirty pages would disturb what is measured next.
    direct: Option<File>,
}

impl Partial {
    /// Opens it under its own name; an error names `path`, which it is to become.
    pub(in crate::target) fn open(name: &Path, path: &Path) -> Result<Self, TargetError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(name)
            .map_err(TargetError::io("create", path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(TargetError::Busy(path.to_owned()));
        }
        let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(name).ok();
        Ok(Self { file, direct })
    }

    /// Free bytes below a folder.
    pub(in crate::target) fn free_bytes(folder: &Path) -> io::Result<u64> {
        let stat = statvfs(folder)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Whether an error says that there is no room.
    pub(in crate::target) fn is_of_room(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
    }

    /// Blocks are allocated beforehand where the file system can: fewer extents. Where it cannot, writing does it.
    pub(in crate::target) fn begin(&mut self, size_bytes: u64) -> io::Result<Option<String>> {
        let _ = fallocate(&self.file, FallocateFlags::empty(), 0, size_bytes.max(1));
        self.file.set_len(size_bytes)?;
        Ok(None)
    }

    /// Writes the first `len` bytes of a buffer.
    pub(in crate::target) fn write(&self, buffer: &[u8], len: usize, offset: u64) -> io::Result<()> {
        let chunk = &buffer[..len];
        let aligned = self.direct.as_ref().filter(|_| len.is_multiple_of(4096));
        aligned
            .map_or(Err(io::ErrorKind::Unsupported.into()), |direct| direct.write_all_at(chunk, offset))
            .or_else(|_| self.file.write_all_at(chunk, offset))
    }

    /// All of it is on the disk afterwards.
    pub(in crate::target) fn end(&self, _size_bytes: u64) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Marks it as virtbench's own.
    pub(in crate::target) fn mark(&self, _name: &Path) -> io::Result<()> {
        guard::mark(&self.file)
    }

    /// Gives it its name, while it is still locked.
    pub(in crate::target) fn rename(self, name: &Path, path: &Path) -> Result<(), TargetError> {
        fs::rename(name, path).map_err(TargetError::io("rename the finished file to", path))
    }
}
