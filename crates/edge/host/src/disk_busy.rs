//! How long a disk has had something to do.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// The place of the time in which I/Os were in flight, in milliseconds (Documentation/block/stat.rst).
const IO_TICKS: usize = 9;

/// How long the disk under a folder has had an I/O in flight since the host started, in milliseconds; nothing where the folder's
/// file system has no disk of its own, or nobody counts.
#[must_use]
pub fn disk_busy_ms(folder: &Path) -> Option<u64> {
    let device = fs::metadata(folder).ok()?.dev();
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let counts = fs::read_to_string(path).ok()?;
    counts.split_whitespace().nth(IO_TICKS)?.parse().ok()
}
