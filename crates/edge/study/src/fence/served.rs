//! A daemon in a thread of this process.

use std::io::Write as _;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, ServeError};

use super::FenceError;

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
