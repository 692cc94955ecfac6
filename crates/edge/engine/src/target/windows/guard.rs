//! Whose data is it? The rules that keep virtbench from destroying what it did not make.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::Storage::FileSystem::{BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle};

/// The stream beside a file's data that marks it as made by virtbench. Not every file system has such streams.
const STREAM: &str = ":virtbench.testfile";

/// What this process has made, by volume and number, for file systems without streams.
static MADE: Mutex<BTreeSet<(u32, u64)>> = Mutex::new(BTreeSet::new());

/// Marks a file as ours: for this process, and in the file itself where it can be.
///
/// # Errors
/// The file system has no place for a mark, so that the file counts as foreign later on.
pub(super) fn mark(file: &File, path: &Path) -> io::Result<()> {
    if let Ok(identity) = identity(file) {
        MADE.lock().unwrap_or_else(PoisonError::into_inner).insert(identity);
    }
    OpenOptions::new().write(true).create(true).truncate(true).open(stream(path))?.write_all(b"1")
}

/// Whether the file at `path` is a test file that virtbench wrote.
#[must_use]
pub fn is_test_file(path: &Path) -> bool {
    let is_made = File::open(path)
        .and_then(|file| identity(&file))
        .is_ok_and(|identity| MADE.lock().unwrap_or_else(PoisonError::into_inner).contains(&identity));
    is_made || File::open(stream(path)).is_ok()
}

fn stream(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(STREAM);
    name.into()
}

/// What tells a file from all others of this machine as long as it exists.
fn identity(file: &File) -> io::Result<(u32, u64)> {
    // SAFETY: the struct is of numbers, for which zero is valid.
    let mut facts: BY_HANDLE_FILE_INFORMATION = unsafe { std::mem::zeroed() };
    // SAFETY: the handle is open, and the struct is the system's to fill.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut facts) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((facts.dwVolumeSerialNumber, u64::from(facts.nFileIndexHigh) << 32 | u64::from(facts.nFileIndexLow)))
}
