//! Limits on a process's I/Os to a block device, by the host's kernel: cgroup v1's `blkio.throttle`, v2's `io.max`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};
use thiserror::Error;
use virtbench_agent::enclosure::{ControlGroup, GroupError, Hierarchy, PROCESSES};

/// cgroup v2's controller.
const CONTROLLER: &str = "io";

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
    #[error("{0}; limits on I/Os need root and CONFIG_BLK_DEV_THROTTLING")]
    Refused(#[from] GroupError),
}

/// Files of a group, and what is written into them.
fn settings(hierarchy: &Hierarchy, device: (u32, u32), limits: IoLimits) -> Vec<(&'static str, String)> {
    let number = format!("{}:{}", device.0, device.1);
    let [reads, writes] = [limits.read_iops, limits.write_iops].map(|iops| iops.max(1));
    match hierarchy {
        Hierarchy::V1(_) => vec![
            ("blkio.throttle.read_iops_device", format!("{number} {reads}")),
            ("blkio.throttle.write_iops_device", format!("{number} {writes}")),
        ],
        Hierarchy::V2(_) => vec![("io.max", format!("{number} riops={reads} wiops={writes}"))],
    }
}

fn find_hierarchy() -> Result<Hierarchy, IoLimitError> {
    Hierarchy::find("blkio", CONTROLLER).ok_or(IoLimitError::NoController)
}

/// A group of processes with limits. It goes when this does; one that a kill left goes when the next is made.
#[derive(Debug)]
pub(crate) struct IoGroup {
    _group: ControlGroup,
}

impl IoGroup {
    /// Limits `process_id`, all its threads, on the block device at `device`.
    pub(crate) fn limit(process_id: u32, device: &Path, limits: IoLimits) -> Result<Self, IoLimitError> {
        let failed = |source| GroupError { action: "look at", path: device.to_owned(), source };
        let number = fs::metadata(device).map_err(failed)?.rdev();
        Self::make(&find_hierarchy()?, process_id, (major(number), minor(number)), limits)
    }

    fn make(
        hierarchy: &Hierarchy,
        process_id: u32,
        device: (u32, u32),
        limits: IoLimits,
    ) -> Result<Self, IoLimitError> {
        let group = ControlGroup::make(hierarchy, CONTROLLER)?;
        for (file, text) in settings(hierarchy, device, limits) {
            group.write(file, &text)?;
        }
        group.write(PROCESSES, &process_id.to_string())?;
        Ok(Self { _group: group })
    }
}

/// Checks that limits can be set, by making a group that is removed again.
///
/// # Errors
/// They cannot.
pub fn check_io_limits() -> Result<(), IoLimitError> {
    let hierarchy = find_hierarchy()?;
    let group = ControlGroup::make(&hierarchy, CONTROLLER)?;
    let (file, _) = settings(&hierarchy, (0, 0), IoLimits { read_iops: 1, write_iops: 1 }).swap_remove(0);
    let path = group.path().join(file);
    let failed = |source| GroupError { action: "find", path: path.clone(), source };
    Ok(fs::metadata(&path).map(drop).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IoLimits = IoLimits { read_iops: 8, write_iops: 0 };

    #[test]
    fn both_versions_are_written_as_the_kernel_reads_them() {
        let files = |hierarchy: Hierarchy| {
            let group = IoGroup::make(&hierarchy, 42, (7, 3), LIMITS).unwrap();
            let mut all: Vec<(String, String)> = fs::read_dir(group._group.path())
                .unwrap()
                .flatten()
                .map(|file| {
                    let text = fs::read_to_string(file.path()).unwrap();
                    (file.file_name().into_string().unwrap(), text)
                })
                .collect();
            all.sort();
            all
        };
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
        };
        let folder = tempfile::tempdir().unwrap();
        let expected = [
            ("blkio.throttle.read_iops_device", "7:3 8"),
            ("blkio.throttle.write_iops_device", "7:3 1"),
            ("cgroup.procs", "42"),
        ];
        assert_eq!(files(Hierarchy::V1(folder.path().to_owned())), owned(&expected));
        let folder = tempfile::tempdir().unwrap();
        let expected = [("cgroup.procs", "42"), ("io.max", "7:3 riops=8 wiops=1")];
        assert_eq!(files(Hierarchy::V2(folder.path().to_owned())), owned(&expected));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = IoGroup::make(&Hierarchy::V2("/nonexistent".into()), 1, (7, 3), LIMITS);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/nonexistent") && error.contains("root"), "{error}");
    }
}
