//! What the engine asks of Linux.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, statfs};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

use super::lock_kind::Lock;

/// Reads and writes at a position, whatever that of the file is.
pub use std::os::unix::fs::FileExt as Positioned;

/// The number of the error that there is no room.
pub(crate) const NO_SPACE: i32 = libc::ENOSPC;

/// Magic numbers of file systems in memory (linux/magic.h) with their names.
const IN_MEMORY_KINDS: [(u32, &str); 3] =
    [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs"), (0x9584_58f6, "hugetlbfs")];

/// Nanoseconds of `CLOCK_MONOTONIC`.
///
/// Not `CLOCK_MONOTONIC_RAW`: timers and sleeps run on the former only, and natively host and agent
/// then share one clock exactly. What NTP may bend it by (500 ppm) is far below the 1 % at which a
/// guest's drift is reported.
#[inline]
#[allow(clippy::cast_sign_loss)]
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether this kernel is User Mode Linux. Its clock is the host's, and each reading of it a system call that passes the host's
/// kernel several times.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_user_mode_linux() -> bool {
    use std::io::Read;
    static IS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IS.get_or_init(|| {
        // The first processor's lines are enough: the file of a large machine is long.
        let mut first = [0; 512];
        let read = File::open("/proc/cpuinfo").and_then(|mut file| file.read(&mut first));
        read.is_ok_and(|count| first[..count].windows(15).any(|words| words == b"User Mode Linux"))
    })
}

/// Lets the calling thread oversleep by little: the default slack of 50 us would look like the target's doing.
pub(crate) fn sharpen_sleep() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Keeps the calling thread on a processor.
pub(crate) fn pin_to(processor: u32) -> io::Result<()> {
    if processor as usize >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(processor as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// What an error number that faults are written with is here.
pub(crate) fn injected(errno: i32) -> i32 {
    errno
}

/// What tells one boot of the machine from another.
pub(crate) fn boot_identity() -> io::Result<[u8; 36]> {
    let text = fs::read("/proc/sys/kernel/random/boot_id")?;
    text.get(..36).and_then(|text| text.try_into().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Locks a file until it is closed, or fails at once.
pub(crate) fn lock(file: &File, lock: Lock) -> io::Result<()> {
    let operation = match lock {
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Lock::Shared => FlockOperation::NonBlockingLockShared,
    };
    Ok(flock(file, operation)?)
}

/// Takes room for so many bytes of a file.
pub(crate) fn take_room(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// Makes durable that a file is in its folder.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The name of the file system under a path, if it keeps its files in memory.
pub(crate) fn memory_name(path: &Path) -> Option<&'static str> {
    let kind = u32::try_from(statfs(path).ok()?.f_type).ok()?;
    IN_MEMORY_KINDS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Drops what the page cache holds of a file or device and has written back already.
pub(crate) fn drop_cache(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}
