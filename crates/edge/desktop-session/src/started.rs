//! Programs that the session has started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long programs may take to end when they are told to.
const END_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// Programs that the session has started, each with all it starts in turn. They go with this.
#[derive(Debug, Default)]
pub(crate) struct Started(Vec<Child>);

impl Started {
    /// Starts one, in a process group of its own.
    pub(crate) fn start(&mut self, words: &[String], display: &str) -> io::Result<()> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env("DISPLAY", display).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn()?);
        Ok(())
    }

    /// How the last one has ended, if it has.
    pub(crate) fn end_of_last(&mut self) -> Option<ExitStatus> {
        self.0.last_mut()?.try_wait().ok().flatten()
    }

    /// Forgets those that have ended.
    pub(crate) fn reap(&mut self) {
        self.0.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Ends all of them, with all that they have started in turn.
    pub(crate) fn end_all(&mut self) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < END_LIMIT {
            if self.0.iter_mut().all(|child| !matches!(child.try_wait(), Ok(None))) {
                break;
            }
            thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        for mut child in self.0.drain(..) {
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: Signal) {
        for child in &self.0 {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // A group that has ended is as good as told.
                let _ = kill_process_group(group, signal);
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end_all();
    }
}
