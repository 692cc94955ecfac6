//! One builder at a time.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::ApplianceError;

/// Between two looks at whether it is free.
const PAUSE: Duration = Duration::from_millis(100);

/// Held until it is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path`, of which `what` says what it is for. `waiting` is told once of the process that holds it.
    pub fn take(
        path: &Path,
        what: &str,
        limit: Duration,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Self, ApplianceError> {
        let failed = || ApplianceError::file("lock", path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed())?;
        }
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed())?;
        let begun = Instant::now();
        let mut holder = None;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed()(error.into())),
            }
            if holder.is_none() {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                waiting(text.trim());
                holder = Some(text.trim().to_owned());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ApplianceError::Stopped);
            }
            if begun.elapsed() > limit {
                let holder = holder.unwrap_or_default();
                return Err(ApplianceError::Busy { what: what.to_owned(), holder, limit });
            }
            thread::sleep(PAUSE);
        }
        // For those who wait. A holder without a name is waited for all the same.
        let holder = std::process::id().to_string();
        let _ = file.set_len(0).and_then(|()| file.write_all_at(holder.as_bytes(), 0));
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_hears_of_the_first_and_gives_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/lock");
        let never = AtomicBool::new(false);
        let take = |limit, told: &mut dyn FnMut(&str)| Lock::take(&path, "redis", limit, &never, told);
        let first = take(Duration::ZERO, &mut |_| panic!("nobody has it")).unwrap();
        let mut told = Vec::new();
        let error = take(Duration::from_millis(150), &mut |holder| told.push(holder.to_owned())).unwrap_err();
        assert_eq!(told, [std::process::id().to_string()]);
        assert!(error.to_string().contains(&format!("by process {}", told[0])), "{error}");
        let stopped = Lock::take(&path, "redis", Duration::from_secs(9), &AtomicBool::new(true), &mut |_| {});
        assert!(matches!(stopped, Err(ApplianceError::Stopped)));
        drop(first);
        // A process that another thread starts has the file until it is another program.
        let _free = take(Duration::from_secs(9), &mut |_| {}).unwrap();
    }

    #[test]
    fn who_waited_is_named_to_the_next_one_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let take = |limit, told: &mut dyn FnMut(&str)| {
            Lock::take(&path, "redis", limit, &AtomicBool::new(false), told)
        };
        let first = take(Duration::ZERO, &mut |_| {}).unwrap();
        let second = thread::scope(|scope| {
            let second = scope.spawn(|| take(Duration::from_secs(9), &mut |_| {}));
            thread::sleep(2 * PAUSE);
            drop(first);
            second.join().unwrap().unwrap()
        });
        let mut told = String::new();
        take(Duration::ZERO, &mut |holder| holder.clone_into(&mut told)).unwrap_err();
        assert_eq!(told, std::process::id().to_string());
        drop(second);
    }
}
