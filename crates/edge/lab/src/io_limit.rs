//! Limits on a process's I/Os to a block device, by the host's kernel: cgroup v1's `blkio.throttle`, v2's `io.max`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use procfs::process::Process;
use rustix::fs::{major, minor};
use thiserror::Error;

/// What the groups' names begin with; then come the process's number, when it was started, and which of its groups.
const PREFIX: &str = "virtbench-";
/// A group can be removed once the kernel has let go of its last process: tries, and the time between them.
const REMOVAL: (u32, Duration) = (100, Duration::from_millis(20));

/// What a guest may do on its disk in a second, at least one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoLimits {
    /// Reads.
    pub read_iops: u32,
    /// Writes. The kernel has no limit on both together.
    pub write_iops: u32,
}

/// No limits can be set.
#[derive(Debug, Error)]
pub enum IoLimitError {
    /// No controller.
    #[error(
        "the kernel limits no I/Os here: neither cgroup v1's blkio nor v2's io is mounted; leave out the system blkio"
    )]
    NoController,
    /// A kernel without throttling, or no right to it.
    #[error("cannot {action} {}: {source}; limits on I/Os need root and CONFIG_BLK_DEV_THROTTLING", path.display())]
    Refused {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Where groups are, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hierarchy {
    /// cgroup v1, of the controller blkio.
    V1(PathBuf),
    /// cgroup v2.
    V2(PathBuf),
}

impl Hierarchy {
    /// The one that is mounted; of v1 if both have the controller, which cannot be.
    fn find() -> Result<Self, IoLimitError> {
        let mounts = Process::myself().and_then(|process| process.mountinfo()).map(|mounts| mounts.0);
        let mounts = mounts.unwrap_or_default();
        let v1 = mounts
            .iter()
            .find(|mount| mount.fs_type == "cgroup" && mount.super_options.contains_key("blkio"));
        let has_io = |root: &Path| {
            let controllers = fs::read_to_string(root.join("cgroup.controllers"));
            controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "io"))
        };
        let v2 = || mounts.iter().find(|mount| mount.fs_type == "cgroup2" && has_io(&mount.mount_point));
        let v1 = v1.map(|mount| Self::V1(mount.mount_point.clone()));
        v1.or_else(|| v2().map(|mount| Self::V2(mount.mount_point.clone()))).ok_or(IoLimitError::NoController)
    }

    fn root(&self) -> &Path {
        match self {
            Self::V1(root) | Self::V2(root) => root,
        }
    }

    /// Files of a group, and what is written into them.
    fn settings(&self, device: (u32, u32), limits: IoLimits) -> Vec<(&'static str, String)> {
        let number = format!("{}:{}", device.0, device.1);
        let [reads, writes] = [limits.read_iops, limits.write_iops].map(|iops| iops.max(1));
        match self {
            Self::V1(_) => vec![
                ("blkio.throttle.read_iops_device", format!("{number} {reads}")),
                ("blkio.throttle.write_iops_device", format!("{number} {writes}")),
            ],
            Self::V2(_) => vec![("io.max", format!("{number} riops={reads} wiops={writes}"))],
        }
    }

    /// v2 gives a controller to the groups below another only when told to.
    fn enable(&self) -> Result<(), IoLimitError> {
        let Self::V2(root) = self else { return Ok(()) };
        let path = root.join("cgroup.subtree_control");
        let names = fs::read_to_string(&path).unwrap_or_default();
        if names.split_whitespace().any(|name| name == "io") { Ok(()) } else { write(&path, "+io") }
    }

    /// Removes what killed runs left.
    fn sweep(&self) {
        for entry in fs::read_dir(self.root()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().and_then(owner).is_some_and(|owner| started(owner.0) != Some(owner.1)) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Number and start of the process that a group's name says made it.
fn owner(name: &str) -> Option<(i32, u64)> {
    let mut words = name.strip_prefix(PREFIX)?.split('-');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// When a process was started, in the kernel's ticks: another of the same number was started at another time.
fn started(process_id: i32) -> Option<u64> {
    Some(Process::new(process_id).ok()?.stat().ok()?.starttime)
}

fn write(path: &Path, text: &str) -> Result<(), IoLimitError> {
    let refused = |source| IoLimitError::Refused { action: "write", path: path.to_owned(), source };
    fs::write(path, text).map_err(refused)
}

/// A group of processes with limits. It goes when this does; one that a kill left goes when the next is made.
#[derive(Debug)]
pub(crate) struct IoGroup {
    path: PathBuf,
}

impl IoGroup {
    /// Limits `process_id`, all its threads, on the block device at `device`.
    pub(crate) fn limit(process_id: u32, device: &Path, limits: IoLimits) -> Result<Self, IoLimitError> {
        let failed = |source| IoLimitError::Refused { action: "look at", path: device.to_owned(), source };
        let number = fs::metadata(device).map_err(failed)?.rdev();
        Self::make(&Hierarchy::find()?, process_id, (major(number), minor(number)), limits)
    }

    fn make(
        hierarchy: &Hierarchy,
        process_id: u32,
        device: (u32, u32),
        limits: IoLimits,
    ) -> Result<Self, IoLimitError> {
        let group = Self::empty(hierarchy)?;
        for (file, text) in hierarchy.settings(device, limits) {
            write(&group.path.join(file), &text)?;
        }
        write(&group.path.join("cgroup.procs"), &process_id.to_string())?;
        Ok(group)
    }

    fn empty(hierarchy: &Hierarchy) -> Result<Self, IoLimitError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        hierarchy.sweep();
        hierarchy.enable()?;
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let (started, number) = (started(own).unwrap_or(0), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = hierarchy.root().join(format!("{PREFIX}{own}-{started}-{number}"));
        let refused = |source| IoLimitError::Refused { action: "make", path: path.clone(), source };
        fs::create_dir(&path).map_err(refused)?;
        Ok(Self { path })
    }
}

impl Drop for IoGroup {
    fn drop(&mut self) {
        let (tries, pause) = REMOVAL;
        for _ in 0..tries {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(pause),
                _ => return,
            }
        }
    }
}

/// Checks that limits can be set, by making a group that is removed again.
///
/// # Errors
/// They cannot.
pub fn check_io_limits() -> Result<(), IoLimitError> {
    let hierarchy = Hierarchy::find()?;
    let group = IoGroup::empty(&hierarchy)?;
    let (file, _) = hierarchy.settings((0, 0), IoLimits { read_iops: 1, write_iops: 1 }).swap_remove(0);
    let path = group.path.join(file);
    let refused = |source| IoLimitError::Refused { action: "find", path: path.clone(), source };
    fs::metadata(&path).map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IoLimits = IoLimits { read_iops: 8, write_iops: 0 };

    fn files(group: &IoGroup) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = fs::read_dir(&group.path)
            .unwrap()
            .flatten()
            .map(|file| {
                let text = fs::read_to_string(file.path()).unwrap();
                (file.file_name().into_string().unwrap(), text)
            })
            .collect();
        all.sort();
        all
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn both_versions_are_written_as_the_kernel_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let v1 = Hierarchy::V1(folder.path().to_owned());
        let group = IoGroup::make(&v1, 42, (7, 3), LIMITS).unwrap();
        let expected = [
            ("blkio.throttle.read_iops_device", "7:3 8"),
            ("blkio.throttle.write_iops_device", "7:3 1"),
            ("cgroup.procs", "42"),
        ];
        assert_eq!(files(&group), owned(&expected));
        assert!(!folder.path().join("cgroup.subtree_control").exists(), "v1 has none");

        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("cgroup.subtree_control");
        fs::write(&control, "cpu memory\n").unwrap();
        let v2 = Hierarchy::V2(folder.path().to_owned());
        let group = IoGroup::make(&v2, 42, (7, 3), LIMITS).unwrap();
        assert_eq!(files(&group), owned(&[("cgroup.procs", "42"), ("io.max", "7:3 riops=8 wiops=1")]));
        assert_eq!(fs::read_to_string(&control).unwrap(), "+io");
        fs::write(&control, "io memory\n").unwrap();
        v2.enable().unwrap();
        assert_eq!(fs::read_to_string(&control).unwrap(), "io memory\n", "it is on already");
    }

    #[test]
    fn groups_of_processes_that_are_gone_are_swept_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let hierarchy = Hierarchy::V1(folder.path().to_owned());
        let own = std::process::id();
        let start = started(i32::try_from(own).unwrap()).unwrap();
        let left = [format!("virtbench-{own}-{}-0", start + 1), "virtbench-2147483646-5-0".to_owned()];
        let kept = [format!("virtbench-{own}-{start}-77"), "virtbench-mine".to_owned(), "machine".to_owned()];
        for name in left.iter().chain(&kept) {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        drop(IoGroup::empty(&hierarchy).unwrap());
        let mut found: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        found.sort();
        let mut kept = kept.to_vec();
        kept.sort();
        assert_eq!(found, kept);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let hierarchy = Hierarchy::V2("/nonexistent".into());
        let error = IoGroup::empty(&hierarchy).unwrap_err().to_string();
        assert!(error.contains("/nonexistent") && error.contains("root"), "{error}");
    }
}
