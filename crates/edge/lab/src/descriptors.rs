//! Open files: whether this process may have as many as its machines need, and files that live in memory. These have no name, so
//! nothing is left behind however a run ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// What a machine takes here at most, while it starts too: its connection's two ends and copies of it, its process, its
/// console, its socket.
pub const DESCRIPTORS_EACH: u64 = 12;

/// What everything else may take beside what is open already: a run folder, test disks, a page.
const OTHERS: u64 = 32;

/// More machines than this process may have descriptors for.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{machines} machines need {needed} open files in this process, which may have {limit}: run `ulimit -n {needed}` before \
     (root may raise the hard limit), or name fewer machines"
)]
pub struct TooFewDescriptors {
    machines: usize,
    needed: u64,
    limit: u64,
}

/// Sees to it that this process may open what `machines` need, by raising its own limit as far as it may.
///
/// # Errors
/// It may not have so many.
pub fn require_descriptors(machines: usize) -> Result<(), TooFewDescriptors> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let limits = getrlimit(Resource::Nofile);
    let Some(needed) = missing(machines, open, &limits)? else { return Ok(()) };
    let raised = Rlimit { current: Some(needed), maximum: limits.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| TooFewDescriptors {
        machines,
        needed,
        limit: limits.current.unwrap_or(u64::MAX),
    })
}

/// What the limit has to be raised to; nothing where it is high enough.
fn missing(machines: usize, open: u64, limits: &Rlimit) -> Result<Option<u64>, TooFewDescriptors> {
    let needed = open + OTHERS + DESCRIPTORS_EACH * machines as u64;
    if limits.current.is_none_or(|limit| limit >= needed) {
        return Ok(None);
    }
    match limits.maximum {
        Some(limit) if limit < needed => Err(TooFewDescriptors { machines, needed, limit }),
        _ => Ok(Some(needed)),
    }
}

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
    use std::io::Read;

    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_be() {
        let limits = |current, maximum| Rlimit { current: Some(current), maximum: Some(maximum) };
        let needed = 10 + OTHERS + 100 * DESCRIPTORS_EACH;
        assert_eq!(missing(100, 10, &limits(needed, needed)), Ok(None));
        assert_eq!(missing(100, 10, &limits(needed - 1, needed)), Ok(Some(needed)));
        let error = missing(100, 10, &limits(256, 1024)).unwrap_err().to_string();
        assert!(error.contains(&format!("ulimit -n {needed}")) && error.contains("may have 1024"), "{error}");
    }

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
