//! Events of the kernel's `perf_event_open`.

use std::fs::{self, File};
use std::io;
use std::os::fd::FromRawFd;

/// The most processors that are looked at.
const MOST_PROCESSORS: i32 = 1024;
const EVERYBODY: i32 = -1;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;

/// The processors that are there, by number.
pub(crate) fn online() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    let range = |word: &str| -> Option<Vec<i32>> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?..=last.parse::<i32>().ok()?.min(MOST_PROCESSORS)).collect())
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// `struct perf_event_attr`, as its first version was.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup_events: u32,
    pub breakpoint_type: u32,
    pub breakpoint: u64,
}

/// An event of what runs on a processor.
///
/// # Errors
/// It is not permitted, or the kernel does not offer it.
pub(crate) fn open(attributes: &Attributes, processor: i32) -> io::Result<File> {
    // SAFETY: the structure has the size that it says and lives through the call, which reads it only.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            EVERYBODY,
            processor,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
