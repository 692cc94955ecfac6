//! What loads on files ask of Windows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use virtbench_workload::files::{CacheControl, FileLoad, FileSpec};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_NO_BUFFERING, FILE_FLAG_WRITE_THROUGH, FILE_WRITE_ATTRIBUTES,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use crate::files::board::FilesError;

/// By which files are opened past the cache.
pub(crate) const DIRECT: &str = "FILE_FLAG_NO_BUFFERING";

/// Where the lock on a whole file lies: far behind any byte, as a lock of Windows keeps others from reading what it covers.
const LOCK_PLACE: u64 = 0x7fff_0000_0000_0000;

/// Whether the system has all that the load needs.
///
/// # Errors
/// The load wants the cache dropped, for which Windows has no call.
pub(crate) fn check(spec: &FileSpec) -> Result<(), FilesError> {
    if spec.cache != CacheControl::Drop {
        return Ok(());
    }
    Err(FilesError::Lacking(if spec.is_timed() {
        "cache=drop is unavailable on Windows, which has no call that drops its cache of files: use cache=keep"
    } else {
        "cache=drop is unavailable on Windows, which has no call that drops its cache of files: use cache=direct or cache=keep"
    }))
}

/// What a reader of the figures should know of the system.
pub(crate) fn remark(spec: &FileSpec) -> Option<&'static str> {
    matches!(&spec.load, FileLoad::Bonnie(bonnie) if bonnie.small_files > 0).then_some(
        "each small file is flushed at the end of the tests that create them, and what was deleted is not: Windows flushes a whole volume \
         for administrators alone",
    )
}

/// Opens past the cache: whole, aligned blocks are moved.
pub(crate) fn bypass_cache(options: &mut OpenOptions) {
    options.custom_flags(FILE_FLAG_NO_BUFFERING);
}

/// Opens so that each write is on the disk when it returns.
pub(crate) fn write_through(options: &mut OpenOptions) {
    options.custom_flags(FILE_FLAG_WRITE_THROUGH);
}

/// Opens a folder.
pub(crate) fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

/// Whether what was to be opened as a file is a folder, to which Windows says that access is denied.
pub(crate) fn is_of_folder(error: &io::Error, path: &Path) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && path.is_dir()
}

/// Opens a file or folder to set its times.
pub(crate) fn open_for_times(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_WRITE_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

/// Brings the files under `folder` to the disk, one by one.
pub(crate) fn sync_files(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if let Ok(file) = OpenOptions::new().write(true).open(entry.path()) {
                file.sync_all()?;
            }
        }
    }
    Ok(())
}

/// The same: what was written past the cache is not in it, and a load that wants it dropped has been refused.
pub(crate) fn settle_files(folder: &Path) -> io::Result<()> {
    sync_files(folder)
}

/// Empties the cache of the whole machine.
///
/// # Errors
/// Always: Windows has no call for it.
pub(crate) fn empty_cache() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no call that empties its cache of files"))
}

/// Locks a file until it is closed, or fails at once.
pub(crate) fn lock_alone(file: &File) -> io::Result<()> {
    lock_range(file, LOCK_PLACE, 1)
}

/// Removes a file on which this process has the lock. Its name goes only once it is closed.
pub(crate) fn remove_locked(path: &Path, lock: Option<File>) {
    drop(lock);
    let _ = fs::remove_file(path);
}

/// Takes a range of a file for writing, or fails at once.
pub(crate) fn lock_range(file: &File, offset: u64, bytes: u32) -> io::Result<()> {
    let mut place = at(offset);
    let how = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the call returns at once, and the struct lives until then.
    let is_locked = unsafe { LockFileEx(file.as_raw_handle(), how, 0, bytes, 0, &raw mut place) };
    if is_locked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives it back. A range that was never taken is no error, as it is none on Linux.
pub(crate) fn unlock_range(file: &File, offset: u64, bytes: u32) -> io::Result<()> {
    let mut place = at(offset);
    // SAFETY: the call returns at once, and the struct lives until then.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, bytes, 0, &raw mut place) };
    Ok(())
}

/// Where a range begins.
#[allow(clippy::cast_possible_truncation, reason = "both halves of the number are kept")]
fn at(offset: u64) -> OVERLAPPED {
    // SAFETY: the struct is of numbers and a pointer, for which zero is valid.
    let mut place: OVERLAPPED = unsafe { std::mem::zeroed() };
    place.Anonymous.Anonymous.Offset = offset as u32;
    place.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
    place
}
