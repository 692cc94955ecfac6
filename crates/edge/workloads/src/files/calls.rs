//! What loads on files ask of Linux.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Advice, FlockOperation, fadvise, flock, sync, syncfs};
use virtbench_workload::files::FileSpec;

use crate::files::board::FilesError;

/// By which files are opened past the cache.
pub(crate) const DIRECT: &str = "O_DIRECT";

/// Whether the system has all that the load needs: it has.
#[allow(clippy::unnecessary_wraps, reason = "other systems lack something")]
pub(crate) fn check(_spec: &FileSpec) -> Result<(), FilesError> {
    Ok(())
}

/// What a reader of the figures should know of the system: nothing.
pub(crate) fn remark(_spec: &FileSpec) -> Option<&'static str> {
    None
}

/// Opens past the cache: whole, aligned blocks are moved.
pub(crate) fn bypass_cache(options: &mut OpenOptions) {
    options.custom_flags(libc::O_DIRECT);
}

/// Opens so that each write is on the disk when it returns.
pub(crate) fn write_through(options: &mut OpenOptions) {
    options.custom_flags(libc::O_DSYNC);
}

/// Opens a folder.
pub(crate) fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// Whether what was to be opened as a file is a folder.
pub(crate) fn is_of_folder(error: &io::Error, _path: &Path) -> bool {
    error.raw_os_error() == Some(libc::EISDIR)
}

/// Opens a file or folder to set its times.
pub(crate) fn open_for_times(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Brings files and names under `folder` to the disk, with all else of its file system.
pub(crate) fn sync_files(folder: &Path) -> io::Result<()> {
    Ok(syncfs(File::open(folder)?)?)
}

/// Brings the files under `folder` to the disk and out of the cache.
pub(crate) fn settle_files(folder: &Path) -> io::Result<()> {
    // Pages that are dirty cannot be dropped.
    sync_files(folder)?;
    drop_pages(folder)
}

/// Empties the cache of the whole machine.
pub(crate) fn empty_cache() -> io::Result<()> {
    sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

/// Drops the pages of every file under `folder`, without recursion.
fn drop_pages(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if let Ok(file) = File::open(entry.path()) {
                fadvise(&file, 0, None, Advice::DontNeed)?;
            }
        }
    }
    Ok(())
}

/// Locks a file until it is closed, or fails at once.
pub(crate) fn lock_alone(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes a file on which this process has the lock, which it keeps until the file is gone.
pub(crate) fn remove_locked(path: &Path, lock: Option<File>) {
    let _ = fs::remove_file(path);
    drop(lock);
}

/// Takes a range of a file for writing, or fails at once.
pub(crate) fn lock_range(file: &File, offset: u64, bytes: u32) -> io::Result<()> {
    set_lock(file, libc::F_WRLCK, offset, bytes)
}

/// Gives it back.
pub(crate) fn unlock_range(file: &File, offset: u64, bytes: u32) -> io::Result<()> {
    set_lock(file, libc::F_UNLCK, offset, bytes)
}

fn set_lock(file: &File, kind: libc::c_int, offset: u64, bytes: u32) -> io::Result<()> {
    #[allow(clippy::cast_possible_truncation)]
    let request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX / 2),
        l_len: bytes.into(),
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the kernel only reads the struct.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
