//! Writing a test file before it is read, so that no read meets what was never written.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};

use virtbench_units::format_bytes;
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL, ERROR_SHARING_VIOLATION, GetLastError, HANDLE,
};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_NO_BUFFERING, FILE_SHARE_DELETE, FILE_SHARE_READ, GetDiskFreeSpaceExW, SetFileValidData,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::guard;
use crate::buffers::Buffers;
use crate::system::Positioned;
use crate::target::error::TargetError;

/// Bytes written at once.
const CHUNK: u64 = 4 << 20;
/// From this size on a file is made valid at once where that is allowed, in bytes: writing it would take minutes.
const LARGE: u64 = 8 << 30;

/// Makes `path` a file of `size_bytes`; returns what a reader of the figures should know.
///
/// It is written under another name and renamed when whole, so that a run that is killed never leaves a half-written file under the name that
/// a later run would trust.
pub(super) fn make_file(
    path: &Path,
    size_bytes: u64,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Vec<String>, TargetError> {
    let partial = partial_name(path);
    // Nobody else may write it, so that the name is also the lock.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE)
        .custom_flags(FILE_FLAG_NO_BUFFERING)
        .open(&partial)
        .map_err(|source| match source.raw_os_error() {
            Some(code) if code == ERROR_SHARING_VIOLATION.cast_signed() => TargetError::Busy(path.to_owned()),
            _ => TargetError::Io { action: "create", path: path.to_owned(), source },
        })?;
    let made = check_room(path, size_bytes).and_then(|()| fill(&file, path, size_bytes, on_progress));
    let mut notes = match made {
        Ok(note) => Vec::from_iter(note),
        Err(error) => {
            drop(file);
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
    };
    if let Err(error) = guard::mark(&file, &partial) {
        notes.push(format!(
            "the file system cannot mark the file as virtbench's own ({error}): a later run needs --allow-overwrite"
        ));
    }
    drop(file);
    fs::rename(&partial, path).map_err(TargetError::io("rename the finished file to", path))?;
    Ok(notes)
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".virtbench-partial");
    path.with_file_name(name)
}

fn check_room(path: &Path, wanted_bytes: u64) -> Result<(), TargetError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = wide(folder.as_os_str());
    let mut free_bytes = 0;
    // SAFETY: the name ends with zero, and the one number that is asked for has a place.
    let is_known = unsafe {
        GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free_bytes, std::ptr::null_mut(), std::ptr::null_mut())
    };
    if is_known == 0 {
        return Err(TargetError::io("look up the free room for", path)(io::Error::last_os_error()));
    }
    if free_bytes < wanted_bytes {
        return Err(TargetError::Full { path: path.to_owned(), wanted_bytes, free_bytes });
    }
    Ok(())
}

fn fill(
    file: &File,
    path: &Path,
    size_bytes: u64,
    mut on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Option<String>, TargetError> {
    let failed = |source: io::Error| match source.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_DISK_FULL | ERROR_HANDLE_DISK_FULL) => {
            TargetError::Full { path: path.to_owned(), wanted_bytes: size_bytes, free_bytes: 0 }
        }
        _ => TargetError::Io { action: "write", path: path.to_owned(), source },
    };
    file.set_len(size_bytes).map_err(failed)?;
    if size_bytes >= LARGE && make_valid(file, size_bytes).is_ok() {
        on_progress(size_bytes, size_bytes);
        return Ok(Some(format!(
            "the file of {} was made valid at once (SetFileValidData): reads find what the disk held before",
            format_bytes(size_bytes)
        )));
    }
    #[allow(clippy::cast_possible_truncation)]
    let mut buffers =
        Buffers::new(1, CHUNK as usize, size_bytes ^ u64::from(std::process::id())).map_err(failed)?;
    let mut offset = 0;
    while offset < size_bytes {
        if !on_progress(offset, size_bytes) {
            return Err(TargetError::Interrupted(path.to_owned()));
        }
        #[allow(clippy::cast_possible_truncation)]
        let len = CHUNK.min(size_bytes - offset) as usize;
        buffers.renew(0, len);
        // Past the cache only whole sectors are written; the file is cut to its size afterwards.
        let whole = len.next_multiple_of(4096);
        file.write_all_at(&buffers.slot(0)[..whole], offset).map_err(failed)?;
        offset += len as u64;
    }
    file.set_len(size_bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    on_progress(size_bytes, size_bytes);
    Ok(None)
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
