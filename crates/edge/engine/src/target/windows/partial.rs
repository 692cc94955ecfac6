//! A test file that is being written.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_units::format_bytes;
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL, ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION,
    GetLastError, HANDLE,
};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_NO_BUFFERING, FILE_SHARE_DELETE, FILE_SHARE_READ,
    GetDiskFreeSpaceExW, GetFileInformationByHandle, SetFileValidData,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::system::Positioned;
use crate::target::error::TargetError;

/// From this size on a file is made valid at once where that is allowed, in bytes: writing it would take minutes.
const LARGE: u64 = 8 << 30;

/// Nobody else may write it, so that its name is also its lock.
pub(in crate::target) struct Partial {
    file: File,
}

impl Partial {
    /// Opens it under its own name; an error names `path`, which it is to become.
    pub(in crate::target) fn open(name: &Path, path: &Path) -> Result<Self, TargetError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE)
            .custom_flags(FILE_FLAG_NO_BUFFERING)
            .open(name)
            .map_err(|source| match source.raw_os_error() {
                Some(code) if code == ERROR_SHARING_VIOLATION.cast_signed() => {
                    TargetError::Busy(path.to_owned())
                }
                _ => TargetError::Io { action: "create", path: path.to_owned(), source },
            })?;
        Ok(Self { file })
    }

    /// Free bytes below a folder.
    pub(in crate::target) fn free_bytes(folder: &Path) -> io::Result<u64> {
        let folder = wide(folder.as_os_str());
        let mut free_bytes = 0;
        // SAFETY: the name ends with zero, and the one number that is asked for has a place.
        let is_known = unsafe {
            GetDiskFreeSpaceExW(
                folder.as_ptr(),
                &raw mut free_bytes,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        if is_known == 0 { Err(io::Error::last_os_error()) } else { Ok(free_bytes) }
    }

    /// Whether an error says that there is no room.
    pub(in crate::target) fn is_of_room(error: &io::Error) -> bool {
        let code = error.raw_os_error().map(i32::cast_unsigned);
        matches!(code, Some(ERROR_DISK_FULL | ERROR_HANDLE_DISK_FULL))
    }

    /// A large one is made valid at once where that is allowed: then it is whole, and what is said of it is returned.
    pub(in crate::target) fn begin(&mut self, size_bytes: u64) -> io::Result<Option<String>> {
        self.file.set_len(size_bytes)?;
        let is_whole = size_bytes >= LARGE && make_valid(&self.file, size_bytes).is_ok();
        Ok(is_whole.then(|| {
            format!(
                "the file of {} was made valid at once (SetFileValidData): reads find what the disk held before",
                format_bytes(size_bytes)
            )
        }))
    }

    /// Writes the first `len` bytes of a buffer, and what follows them up to a whole sector: past the cache only whole ones are written.
    pub(in crate::target) fn write(&self, buffer: &[u8], len: usize, offset: u64) -> io::Result<()> {
        self.file.write_all_at(&buffer[..len.next_multiple_of(4096)], offset)
    }

    /// It is cut to its size, and all of it is on the disk afterwards.
    pub(in crate::target) fn end(&self, size_bytes: u64) -> io::Result<()> {
        self.file.set_len(size_bytes)?;
        self.file.sync_all()
    }

    /// Marks it as virtbench's own.
    pub(in crate::target) fn mark(&self, name: &Path) -> io::Result<()> {
        mark(&self.file, name)
    }

    /// Gives it its name, once it is closed and nobody else has it open.
    pub(in crate::target) fn rename(self, name: &Path, path: &Path) -> Result<(), TargetError> {
        drop(self);
        when_free(|| fs::rename(name, path))
            .map_err(|source| failed("rename the finished file to", path, source))
    }
}

/// Has the system take what is on the disk for the file's contents, which needs the privilege to manage volumes.
fn make_valid(file: &File, size_bytes: u64) -> io::Result<()> {
    enable_privilege("SeManageVolumePrivilege")?;
    // SAFETY: the handle is open for writing.
    if unsafe { SetFileValidData(file.as_raw_handle(), size_bytes.cast_signed()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Has this process use a privilege that its user has.
fn enable_privilege(name: &str) -> io::Result<()> {
    let name = wide(OsStr::new(name));
    // SAFETY: the structs are of numbers, for which zero is valid; the name ends with zero, and the token is closed.
    unsafe {
        let mut privileges: TOKEN_PRIVILEGES = std::mem::zeroed();
        let mut entry: LUID_AND_ATTRIBUTES = std::mem::zeroed();
        if LookupPrivilegeValueW(std::ptr::null(), name.as_ptr(), &raw mut entry.Luid) == 0 {
            return Err(io::Error::last_os_error());
        }
        entry.Attributes = SE_PRIVILEGE_ENABLED;
        privileges.PrivilegeCount = 1;
        privileges.Privileges[0] = entry;
        let mut token: HANDLE = std::ptr::null_mut();
        if OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES, &raw mut token) == 0 {
            return Err(io::Error::last_os_error());
        }
        let adjusted = AdjustTokenPrivileges(
            token,
            0,
            &raw const privileges,
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        // It succeeds also where the user has no such privilege, and says that by its error alone.
        let code = GetLastError();
        CloseHandle(token);
        if adjusted == 0 || code != 0 {
            return Err(io::Error::from_raw_os_error(code.cast_signed()));
        }
    }
    Ok(())
}

fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}

/// How long another program may have a file that is needed.
const LIMIT: Duration = Duration::from_secs(5);

/// How long one waits between attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Does what another program may stand in the way of, again and again until it does not.
///
/// # Errors
/// It still does after five seconds, or something else is wrong.
pub(super) fn when_free<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let limit = Instant::now() + LIMIT;
    loop {
        match action() {
            Err(error) if is_busy(&error) && Instant::now() < limit => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Whether an error says that another program has the file.
pub(super) fn is_busy(error: &io::Error) -> bool {
    let codes = [ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION].map(u32::cast_signed);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// What is said of a file that another program has.
pub(super) fn held(path: &Path) -> TargetError {
    TargetError::InUse {
        path: path.to_owned(),
        use_: "another program holds it, perhaps one that scans for viruses".into(),
    }
}

/// What is said of an action that failed.
pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> TargetError {
    if is_busy(&source) { held(path) } else { TargetError::Io { action, path: path.to_owned(), source } }
}

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
