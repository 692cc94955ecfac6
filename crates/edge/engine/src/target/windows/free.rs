//! Files that another program has open, as scanners for viruses have every new file for a moment.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION};

use crate::target::error::TargetError;

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
