//! The daemon in a thread of this process, and the folder of its sockets.
//!
//! Caches as they are after a long time: filled at the speed of the files under the models.
//!
//! At a hard disk's speed it would take many minutes. The cache outlives the daemon that filled it, so that the one
//! that is measured, whatever its scheduler, finds it as it was left.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, ServeError};
use virtbench_runs::Held;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::{FenceError, FenceRequest};
use crate::disks::disk::hold;

/// How long it may take to start: the metadata of a cache is read, and an earlier one's lock waited for.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Of the daemon's thread among this host's, as `nice` counts.
const PRIORITY: i32 = -15;

/// A daemon at work. Dropping it waits until requests in flight are finished, for a limited time.
#[derive(Debug)]
pub(super) struct Served {
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    /// What it served where.
    #[cfg_attr(not(test), allow(dead_code, reason = "for tests to find its figures"))]
    pub(super) lines: Vec<String>,
}

impl Served {
    /// Starts it; its sockets are there when this returns.
    pub(super) fn start(config: Config) -> Result<Self, FenceError> {
        let stopper = Stopper::new()
            .map_err(|source| ServeError::System { action: "a descriptor to stop it by", source })?;
        let (up, is_up) = mpsc::sync_channel(1);
        let stop = stopper.clone();
        let serve = move || match Daemon::start(&config, stop) {
            Ok(daemon) => {
                // Guests under emulation take all processors there are; a device does not wait for those that use it. Who may
                // not have this goes without.
                let _ = rustix::process::setpriority_process(None, PRIORITY);
                let _ = up.send(Ok(daemon.served.clone()));
                if let Err(error) = daemon.run() {
                    // Guests see their disks go, which is measured and recorded.
                    let _ = writeln!(std::io::stderr(), "the fence's daemon ended: {error}");
                }
            }
            Err(error) => {
                let _ = up.send(Err(error));
            }
        };
        let thread = thread::Builder::new()
            .name("fence".into())
            .spawn(serve)
            .map_err(|source| ServeError::System { action: "a thread", source })?;
        let mut served = Self { stopper, thread: Some(thread), lines: Vec::new() };
        served.lines = is_up.recv_timeout(START_LIMIT).map_err(|_| FenceError::Silent)??;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const PREFIX: &str = "virtbench-fence-";

/// Somebody who cleans up may take a new folder for one left behind.
const ATTEMPTS: usize = 8;

/// A folder that goes with its run. One that a killed run has left is removed by the next run of the same user.
#[derive(Debug)]
pub(super) struct SocketFolder {
    folder: TempDir,
    /// Of the folder itself: as long as somebody uses it.
    _lock: Held,
}

impl SocketFolder {
    /// # Errors
    /// None can be made in `parent`.
    pub(super) fn new(parent: &Path) -> Result<Self, FenceError> {
        let fails = |source| FenceError::File { path: parent.to_owned(), source };
        remove_abandoned(parent);
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(fails)?;
            if let Ok(lock) = hold(folder.path())
                && folder.path().exists()
            {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(fails(io::ErrorKind::ResourceBusy.into()))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whatever cannot be removed stays, and harms nobody.
fn remove_abandoned(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself: nothing is followed.
        let folder = || entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == own);
        if ours
            && folder()
            && let Ok(_lock) = hold(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Accesses of each cached block, on average.
const TIMES: u64 = 3;

/// How long one round of reading takes.
const ROUND_NS: u64 = 250_000_000;

/// How long the cache of one disk may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What was written last and is not flushed is lost with the first daemon, which is as good as not written.
const FLUSH_EVERY: u32 = 100;

/// Between one round's seed and the next one's.
const SEEDS: u64 = 1000;

const BLOCK_BYTES: u64 = 4096;

/// Accesses each disk until its cache has seen enough.
pub(super) fn fill(
    request: &FenceRequest<'_>,
    nbd: &Path,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<(), FenceError> {
    let FenceRequest { names, size_bytes, options, .. } = *request;
    let reads = AccessSpec::single(AccessLine::new(BLOCK_BYTES, 100.0, 100.0));
    let access = request.warm.unwrap_or(&reads);
    let writes = access.lines.iter().any(|line| line.read_percent < 100.0);
    let wanted = size_bytes / BLOCK_BYTES * u64::from(options.cache_percent) / 100 * TIMES;
    for (seed, name) in (0..).zip(names) {
        let request = TargetRequest {
            path: format!("nbd+unix:///{name}?socket={}", nbd.display()).into(),
            size_bytes: None,
            direct: true,
            reads: true,
            writes,
            allow_overwrite: true,
        };
        let target = Target::open(&request, |_, _| true)?;
        let mut spec = LoadSpec {
            outstanding: 32,
            ramp_ns: 0,
            time_ns: ROUND_NS,
            interval_ns: ROUND_NS,
            seed,
            flush_every: writes.then_some(FLUSH_EVERY),
            ..LoadSpec::new(access.clone(), size_bytes)
        };
        let (begun, mut done) = (Instant::now(), 0);
        while done < wanted && !stop.load(Ordering::Relaxed) {
            if begun.elapsed() > LIMIT {
                return Err(FenceError::Slow);
            }
            on_progress("filling the caches", done, wanted);
            spec.seed += SEEDS;
            done += virtbench_engine::run(&spec, &target, &Control::new(1), 0, |_| ())?.total.operations;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_used_is_not() {
        let parent = TempDir::new().unwrap();
        let left = parent.path().join("virtbench-fence-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("fence.toml"), "x").unwrap();
        let other = parent.path().join("somebody-else");
        fs::create_dir(&other).unwrap();
        let first = SocketFolder::new(parent.path()).unwrap();
        let second = SocketFolder::new(parent.path()).unwrap();
        assert!(!left.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
