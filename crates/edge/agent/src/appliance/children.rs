//! Processes that the agent has started, and those that are left to it as the first process: all are waited for.

use std::collections::HashMap;
use std::io;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group, wait, waitid,
};

/// How long to wait before looking again where there is no child at all.
const PAUSE: Duration = Duration::from_millis(100);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl End {
    /// One of which nothing is known.
    pub(crate) const NONE: Self = Self { exit_code: None, signal: None };

    /// In words.
    pub(crate) fn describe(self) -> String {
        match (self.exit_code, self.signal) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".into(),
        }
    }
}

/// All of them. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Children(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Those that were started and are asked about, with their end once it is known.
    known: HashMap<Pid, Option<End>>,
}

impl Children {
    /// Begins to wait for all children of this process.
    ///
    /// # Errors
    /// No thread could be started.
    pub(crate) fn new() -> io::Result<Self> {
        let children = Self(Arc::default());
        let reaper = children.clone();
        thread::Builder::new().name("reaper".into()).spawn(move || reaper.reap())?;
        Ok(children)
    }

    /// Starts a process.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Pid> {
        let mut state = self.lock();
        // Nobody is reaped meanwhile: the standard library waits itself for a child that cannot execute its program.
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        state.known.insert(pid, None);
        Ok(pid)
    }

    /// How it ended, if it has.
    pub(crate) fn end(&self, pid: Pid) -> Option<End> {
        self.lock().known.get(&pid).copied().flatten()
    }

    /// How it ended, if it has or does within `limit`.
    pub(crate) fn wait_within(&self, pid: Pid, limit: Duration) -> Option<End> {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(Some(end)) = state.known.get(&pid) {
                return Some(*end);
            }
            if left.is_zero() {
                return None;
            }
            state = self.wait_on(state, left);
        }
    }

    /// Waits until one has ended, or `limit` is over.
    pub(crate) fn wait_for_any(&self, limit: Duration) {
        drop(self.wait_on(self.lock(), limit));
    }

    /// Sends a signal to one that has not ended.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal) {
        // Its number is its own while it is not reaped, which the lock prevents.
        if let Some(None) = self.lock().known.get(&pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills one and what is left of the session that it leads, and forgets it.
    pub(crate) fn finish(&self, pid: Pid) {
        // A group's number is not used anew while the group has a member.
        let _ = kill_process_group(pid, Signal::KILL);
        self.signal(pid, Signal::KILL);
        self.wait_within(pid, Duration::from_secs(5));
        self.lock().known.remove(&pid);
    }

    /// Kills every process but the agent, which must be the first one of its machine or its namespaces.
    pub(crate) fn kill_all(&self, limit: Duration) -> bool {
        if getpid() != Pid::INIT {
            return false;
        }
        // This is kill(-1), which spares the first process: see kill(2).
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
        let until = Instant::now() + limit;
        loop {
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG) {
                Err(Errno::CHILD) => return true,
                _ if Instant::now() > until => return false,
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn reap(&self) {
        loop {
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => {}
                Err(_) => {
                    thread::sleep(PAUSE);
                    continue;
                }
            }
            let mut state = self.lock();
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                if let Some(end) = state.known.get_mut(&pid) {
                    *end = Some(End { exit_code: status.exit_status(), signal: status.terminating_signal() });
                }
            }
            drop(state);
            self.0.changed.notify_all();
        }
    }

    fn wait_on<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.0.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
