//! A test file that is being written.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{
    FallocateFlags, FlockOperation, XattrFlags, fallocate, fgetxattr, flock, fsetxattr, major, minor, statvfs,
};

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
        mark(&self.file)
    }

    /// Gives it its name, while it is still locked.
    pub(in crate::target) fn rename(self, name: &Path, path: &Path) -> Result<(), TargetError> {
        fs::rename(name, path).map_err(TargetError::io("rename the finished file to", path))
    }
}

/// Extended attribute that marks a file as made by virtbench.
const MARK: &str = "user.virtbench.testfile";

/// Marks a file as ours. File systems without extended attributes refuse, which only means that
/// the file counts as foreign later on.
pub(crate) fn mark(file: &File) -> io::Result<()> {
    Ok(fsetxattr(file, MARK, b"1", XattrFlags::empty())?)
}

/// Whether the file at `path` is a test file that virtbench wrote.
#[must_use]
pub fn is_test_file(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| is_ours(&file))
}

/// Whether virtbench made this file.
pub(crate) fn is_ours(file: &File) -> bool {
    let mut value = [0u8; 8];
    fgetxattr(file, MARK, &mut value).is_ok_and(|length| length > 0)
}

/// Refuses a block device on which anything else depends: a mounted file system (also on one of
/// its partitions), swap, or a device built on top of it.
pub(crate) fn refuse_device_in_use(path: &Path, device: u64) -> Result<(), TargetError> {
    let use_ = device_use(device).map_err(TargetError::io("look up the use of", path))?;
    use_.map_or(Ok(()), |use_| Err(TargetError::InUse { path: path.to_owned(), use_ }))
}

fn device_use(device: u64) -> io::Result<Option<String>> {
    let own = number(device);
    let sys = Path::new("/sys/dev/block").join(&own);
    let mut numbers = vec![own];
    for entry in fs::read_dir(&sys)?.flatten() {
        if entry.path().join("partition").exists() {
            numbers.push(fs::read_to_string(entry.path().join("dev"))?.trim().to_owned());
        }
    }
    if let Some(mount) = mounted_at(&fs::read_to_string("/proc/self/mountinfo")?, &numbers) {
        return Ok(Some(format!("mounted at {mount}")));
    }
    for line in fs::read_to_string("/proc/swaps").unwrap_or_default().lines().skip(1) {
        let swap = line.split_whitespace().next().unwrap_or_default();
        if fs::metadata(swap).is_ok_and(|meta| numbers.contains(&number(meta.rdev()))) {
            return Ok(Some("swap".to_owned()));
        }
    }
    for number in &numbers {
        let holders = Path::new("/sys/dev/block").join(number).join("holders");
        if let Some(holder) = fs::read_dir(holders).ok().and_then(|mut all| all.next()).transpose()? {
            return Ok(Some(format!("{} is built on it", holder.file_name().to_string_lossy())));
        }
    }
    Ok(None)
}

/// A device number as the kernel writes it in `/proc/self/mountinfo` and under `/sys/dev/block`.
fn number(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// Where one of these devices is mounted, according to a mountinfo text (proc(5)).
fn mounted_at<'a>(mountinfo: &'a str, numbers: &[String]) -> Option<&'a str> {
    mountinfo.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?;
        let mount = fields.nth(1)?;
        numbers.iter().any(|number| number == device).then_some(mount)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_device_number() {
        let text = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n23 22 0:5 / /dev rw - devtmpfs x rw\n";
        assert_eq!(mounted_at(text, &["254:0".into()]), Some("/"));
        assert_eq!(mounted_at(text, &["254:1".into(), "0:5".into()]), Some("/dev"));
        assert_eq!(mounted_at(text, &["8:0".into()]), None);
    }

    #[test]
    fn the_root_device_is_in_use() {
        let root = fs::metadata("/").unwrap().dev();
        let device = Path::new("/sys/dev/block").join(number(root));
        assert!(device.exists(), "/ is not on a block device here: run the tests where it is");
        assert!(device_use(root).unwrap().is_some_and(|use_| use_.contains("mounted at")));
    }

    #[test]
    fn a_file_is_ours_only_when_marked() {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        assert!(!is_ours(file.as_file()));
        mark(file.as_file()).unwrap();
        assert!(is_ours(file.as_file()));
    }
}
