//! What the engine asks of Windows.

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{ERROR_DISK_FULL, ERROR_IO_DEVICE, FILETIME};
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::SystemInformation::{GetSystemTimeAsFileTime, GetTickCount64};
use windows_sys::Win32::System::Threading::{
    GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentThread, SetThreadGroupAffinity,
};

use super::lock_kind::Lock;
use super::processor_groups::place_in_groups;

/// The number of the error that there is no room.
pub(crate) const NO_SPACE: i32 = ERROR_DISK_FULL.cast_signed();
/// `EIO` of Linux, which faults are written with.
const EIO: i32 = 5;
/// Where a lock lies, in 4 GiB: far behind any byte, as a lock of Windows keeps others from reading what it covers.
const LOCK_PLACE: u32 = 0x7fff_0000;

/// Reads and writes at a position. They move the file's own position, which nothing here uses.
pub trait Positioned {
    /// Reads at most so many bytes.
    ///
    /// # Errors
    /// The system refuses.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at most so many bytes.
    ///
    /// # Errors
    /// The system refuses.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads so many bytes.
    ///
    /// # Errors
    /// The system refuses, or the file ends before.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    buffer = &mut buffer[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// The system refuses.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }
}

impl Positioned for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.seek_write(bytes, offset)
    }
}

/// Nanoseconds of the performance counter, which neither stands still nor is set.
#[inline]
pub(crate) fn now_ns() -> u64 {
    static PER_SECOND: OnceLock<u64> = OnceLock::new();
    let per_second = *PER_SECOND.get_or_init(|| {
        let mut frequency = 0_i64;
        // SAFETY: the call writes a number where it is told to, and cannot fail since Windows XP.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        frequency.unsigned_abs().max(1)
    });
    let mut count = 0_i64;
    // SAFETY: as above.
    unsafe { QueryPerformanceCounter(&raw mut count) };
    let count = count.unsigned_abs();
    // In two parts, so that nothing overflows: seconds, and what is left of one.
    let (seconds, rest) = (count / per_second, count % per_second);
    seconds * 1_000_000_000 + rest * 1_000_000_000 / per_second
}

/// Lets the calling thread oversleep by little: the standard library sleeps by timers of high resolution already.
pub(crate) fn sharpen_sleep() {}

/// Keeps the calling thread on a processor. They are counted through all groups.
pub(crate) fn pin_to(processor: u32) -> io::Result<()> {
    // SAFETY: both calls only read numbers.
    let sizes = unsafe { (0..GetActiveProcessorGroupCount()).map(|group| GetActiveProcessorCount(group)) };
    let (group, number) = place_in_groups(sizes, processor).ok_or(io::ErrorKind::InvalidInput)?;
    let wanted = GROUP_AFFINITY { Mask: 1 << number, Group: group, Reserved: [0; 3] };
    // SAFETY: the handle means the calling thread and need not be closed; the struct lives until the call returns.
    let is_kept =
        unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const wanted, std::ptr::null_mut()) };
    if is_kept == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What an error number that faults are written with is here.
pub(crate) fn injected(errno: i32) -> i32 {
    if errno == EIO { ERROR_IO_DEVICE.cast_signed() } else { errno }
}

/// What tells one boot of the machine from another: the minute of its start, as text.
pub(crate) fn boot_identity() -> io::Result<[u8; 36]> {
    let mut now = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    // SAFETY: both calls only read clocks, the first into the struct that it is given.
    let up_ms = unsafe {
        GetSystemTimeAsFileTime(&raw mut now);
        GetTickCount64()
    };
    let now = u64::from(now.dwHighDateTime) << 32 | u64::from(now.dwLowDateTime);
    let minute = (now.saturating_sub(up_ms.saturating_mul(10_000)) + 300_000_000) / 600_000_000;
    format!("{minute:036}").as_bytes().try_into().map_err(io::Error::other)
}

/// Locks a file until it is closed, or fails at once.
pub(crate) fn lock(file: &File, lock: Lock) -> io::Result<()> {
    let kind = if lock == Lock::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
    // SAFETY: the struct is of numbers, for which zero is valid.
    let mut place: OVERLAPPED = unsafe { std::mem::zeroed() };
    place.Anonymous.Anonymous.OffsetHigh = LOCK_PLACE;
    // SAFETY: the call returns at once, and the struct lives until then.
    let is_locked = unsafe {
        LockFileEx(file.as_raw_handle(), kind | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &raw mut place)
    };
    if is_locked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes room for so many bytes of a file, which NTFS does where a file is made longer.
pub(crate) fn take_room(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)
}

/// Makes durable that a file is in its folder: NTFS journals that, and a folder cannot be flushed.
#[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The name of the file system under a path, if it keeps its files in memory: Windows has none of its own.
pub(crate) fn memory_name(_path: &Path) -> Option<&'static str> {
    None
}

/// Drops what the cache holds of a file.
///
/// # Errors
/// Always: Windows has no call for one file.
pub(crate) fn drop_cache(_file: &File) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no call that empties the cache of one file"))
}
