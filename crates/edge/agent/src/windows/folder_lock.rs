//! The lock on a folder of which there is one user at a time: a file beside it, which goes when its handle does, however the process ends.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_DELETE_ON_CLOSE;

/// How long other programs may have open what is to be removed.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);
/// How long one waits between attempts.
const REMOVE_PAUSE: Duration = Duration::from_millis(50);
/// What is added to the folder's name.
const SUFFIX: &str = ".lock";

/// The file, where nobody else had it.
#[derive(Debug)]
pub(crate) struct FolderLock(Option<File>);

impl FolderLock {
    /// Makes the file beside a folder; nothing if the folder has just gone.
    ///
    /// # Errors
    /// No file can be made there.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        if !fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) {
            return Ok(None);
        }
        let mut name = path.as_os_str().to_owned();
        name.push(SUFFIX);
        // Shared with nobody: who comes second is refused by the system.
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .share_mode(0)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
            .open(name);
        match opened {
            Ok(file) => Ok(Some(Self(Some(file)))),
            Err(error) if is_held(&error) => Ok(Some(Self(None))),
            Err(error) => Err(error),
        }
    }

    /// Whether nobody else has it.
    pub(crate) fn take(&self) -> bool {
        self.0.is_some()
    }

    /// Whether there is still a folder of this name, which who has the lock alone removes.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
    }

    /// Lets others have it.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}

/// Whether somebody has it, or has just let go of it so that the system is removing it.
fn is_held(error: &io::Error) -> bool {
    let codes = [ERROR_SHARING_VIOLATION, ERROR_ACCESS_DENIED].map(u32::cast_signed);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Makes a folder. Who can look into it is what its parent says, as for every folder of Windows.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Makes it possible to remove a folder that this process works in, which Windows refuses.
pub(crate) fn leave(path: &Path) {
    if let Some(root) = path.ancestors().last() {
        let _ = std::env::set_current_dir(root);
    }
}

/// Removes what other programs may have open, such as scanners, once they have not.
///
/// # Errors
/// They still have it after [`REMOVE_LIMIT`], or something else is wrong.
pub(crate) fn remove_when_free(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let limit = Instant::now() + REMOVE_LIMIT;
    loop {
        match remove() {
            Err(error) if error.kind() != io::ErrorKind::NotFound && Instant::now() < limit => {
                thread::sleep(REMOVE_PAUSE);
            }
            removed => return removed,
        }
    }
}
