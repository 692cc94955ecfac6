//! The storage under a directory, as the kernel describes it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use procfs::process::{MountInfo, Process};
use rustix::fs::{major, minor, statvfs};
use virtbench_record::DiskFacts;

/// What lies under `path`, a file or directory. What cannot be found out is `None`, or `unknown`.
#[must_use]
pub fn disk_facts(path: &Path) -> DiskFacts {
    let mount = fs::canonicalize(path).ok().and_then(|path| mount_of(&path));
    let device = mount.as_ref().and_then(|mount| block_device(path, mount));
    // Read-ahead, scheduler and cache belong to the whole disk, which holds its partitions.
    let queue = device.as_ref().and_then(|device| {
        let candidates = [device.join("queue"), device.join("../queue")];
        candidates.into_iter().find(|queue| queue.is_dir())
    });
    let setting = |name: &str| read_line(&queue.as_ref()?.join(name));
    DiskFacts {
        filesystem: mount.as_ref().map_or_else(|| "unknown".into(), |mount| mount.fs_type.clone()),
        device: device
            .as_ref()
            .and_then(|device| {
                Some(format!("/dev/{}", fs::canonicalize(device).ok()?.file_name()?.to_str()?))
            })
            .or_else(|| mount?.mount_source.filter(|source| source.starts_with("/dev/"))),
        rotational: setting("rotational").map(|value| value == "1"),
        scheduler: setting("scheduler").map(|line| chosen_scheduler(&line)),
        write_cache: setting("write_cache"),
    }
}

/// The mount that holds `path`: the deepest mount point above it, the last where several are stacked.
fn mount_of(path: &Path) -> Option<MountInfo> {
    let mounts = Process::myself().ok()?.mountinfo().ok()?.0;
    let above = mounts.into_iter().filter(|mount| path.starts_with(&mount.mount_point));
    above.max_by_key(|mount| mount.mount_point.components().count())
}

/// The kernel's directory for the block device under `path`.
fn block_device(path: &Path, mount: &MountInfo) -> Option<PathBuf> {
    let device = fs::metadata(path).ok()?.dev();
    // A file system over several devices, such as btrfs, shows a number that is no device's own.
    let numbers = [format!("{}:{}", major(device), minor(device)), mount.majmin.clone()];
    let by_number = numbers.iter().map(|number| Path::new("/sys/dev/block").join(number));
    let source = mount.mount_source.as_deref().and_then(|source| source.strip_prefix("/dev/"));
    let by_name = source.map(|name| Path::new("/sys/class/block").join(name));
    by_number.chain(by_name).find_map(|directory| fs::canonicalize(directory).ok())
}

/// The scheduler in brackets of `none [mq-deadline] bfq`.
#[must_use]
pub fn chosen_scheduler(line: &str) -> String {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(line, |(name, _)| name).to_owned()
}

fn read_line(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

/// The place of the time in which I/Os were in flight, in milliseconds (Documentation/block/stat.rst).
const IO_TICKS: usize = 9;

/// How long the disk under a folder has had an I/O in flight since the host started, in milliseconds; nothing where the folder's
/// file system has no disk of its own, or it is not counted.
#[must_use]
pub fn disk_busy_ms(folder: &Path) -> Option<u64> {
    let device = fs::metadata(folder).ok()?.dev();
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let counts = fs::read_to_string(path).ok()?;
    counts.split_whitespace().nth(IO_TICKS)?.parse().ok()
}

/// Bytes that an ordinary user may still write to the file system of a file or folder, which is there.
///
/// # Errors
/// It cannot be looked at.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let facts = statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen_scheduler("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen_scheduler("none"), "none");
        assert_eq!(chosen_scheduler("]["), "][");
    }

    #[test]
    fn proc_is_a_file_system_without_a_device() {
        let facts = disk_facts(Path::new("/proc/self"));
        assert_eq!((facts.filesystem.as_str(), facts.device, facts.rotational), ("proc", None, None));
    }

    #[test]
    fn what_does_not_exist_is_unknown() {
        assert_eq!(disk_facts(Path::new("/nonexistent/place")).filesystem, "unknown");
    }
}
