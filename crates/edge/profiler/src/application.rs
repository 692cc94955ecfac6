//! The application: started here, or found running.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, waitid,
};
use thiserror::Error;

use crate::tree::Tree;

/// How long processes that were asked to end may take.
const END_LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Why there is no application to watch.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ApplicationError {
    /// It cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// No process has this number.
    #[error("--pid {0}: there is no such process")]
    NoProcess(u32),
    /// The operating system refused.
    #[error("cannot watch processes: {0}")]
    Watch(io::Error),
}

/// What is watched.
#[derive(Debug)]
pub enum Application {
    /// A command that was started here; it ends with this program.
    Started {
        /// Its first process.
        child: Child,
        /// Its command line.
        command: Vec<String>,
    },
    /// A process that was running before.
    Running {
        /// Its number.
        process_id: u32,
        /// Its command line.
        command: Vec<String>,
    },
}

impl Application {
    /// Starts a command, in `folder` where one is given. What it prints goes to `output`, or to stderr: stdout is for the profile. Processes of it that
    /// lose their parent become children of this one, so that none is lost sight of.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        command: &[String],
        folder: Option<&Path>,
        output: Option<Stdio>,
    ) -> Result<Self, ApplicationError> {
        let program = command.first().cloned().unwrap_or_default();
        set_child_subreaper(Some(getpid())).map_err(|error| ApplicationError::Watch(error.into()))?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)
            .map_err(|error| ApplicationError::Watch(error.into()))?;
        let mut prepared = Command::new(&program);
        prepared
            .args(command.get(1..).unwrap_or_default())
            .stdout(output.unwrap_or_else(|| Stdio::from(stderr)));
        if let Some(folder) = folder {
            prepared.current_dir(folder);
        }
        // SAFETY: between fork and exec only async-signal-safe calls are made: one prctl.
        unsafe {
            prepared
                .pre_exec(|| set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from));
        }
        let child = prepared.spawn().map_err(|source| ApplicationError::Start { program, source })?;
        Ok(Self::Started { child, command: command.to_vec() })
    }

    /// Finds a process that is running.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn find(process_id: u32) -> Result<Self, ApplicationError> {
        let process = i32::try_from(process_id).ok().and_then(|pid| procfs::process::Process::new(pid).ok());
        let process =
            process.filter(|process| process.is_alive()).ok_or(ApplicationError::NoProcess(process_id))?;
        let command = process.cmdline().ok().filter(|words| !words.is_empty());
        let command =
            command.unwrap_or_else(|| process.stat().map(|stat| vec![stat.comm]).unwrap_or_default());
        Ok(Self::Running { process_id, command })
    }

    /// Its first process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        match self {
            Self::Started { child, .. } => child.id(),
            Self::Running { process_id, .. } => *process_id,
        }
    }

    /// Its command line.
    #[must_use]
    pub fn command(&self) -> &[String] {
        match self {
            Self::Started { command, .. } | Self::Running { command, .. } => command,
        }
    }

    /// The command that was started here; nothing of a process that was found running.
    #[must_use]
    pub fn started(&self) -> &[String] {
        match self {
            Self::Started { command, .. } => command,
            Self::Running { .. } => &[],
        }
    }

    /// Its processes: every descendant of this one, or the process found and its descendants.
    pub(crate) fn tree(&self) -> Tree {
        match self {
            Self::Started { .. } => Tree::new(std::process::id(), false),
            Self::Running { process_id, .. } => Tree::new(*process_id, true),
        }
    }

    /// Whether all its processes have ended; those that nobody has waited for have.
    pub(crate) fn has_ended(tree: &Tree) -> bool {
        !tree.processes().iter().any(procfs::process::Process::is_alive)
    }

    /// Ends what was started here and is running still, and waits for it, within a limit. What was found
    /// running is left alone. Gives how the first process ended, where it did by itself.
    pub(crate) fn end(self, tree: &Tree) -> Option<ExitStatus> {
        let Self::Started { mut child, .. } = self else { return None };
        let by_itself = has_exited(child.id());
        for signal in [Signal::TERM, Signal::KILL] {
            if Self::has_ended(tree) {
                break;
            }
            for process in tree.processes() {
                if let Some(pid) = Pid::from_raw(process.pid()) {
                    let _ = kill_process(pid, signal);
                }
            }
            let begun = Instant::now();
            while begun.elapsed() < END_LIMIT && !Self::has_ended(tree) {
                thread::sleep(PAUSE);
            }
        }
        let status = child.try_wait().ok().flatten();
        // Orphans that came to us; each is waited for once, without waiting.
        for process in tree.processes() {
            if let Some(pid) = Pid::from_raw(process.pid()) {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }
        status.filter(|_| by_itself)
    }
}

/// Whether a child has ended, without taking away its accounts.
fn has_exited(process_id: u32) -> bool {
    let Some(pid) = i32::try_from(process_id).ok().and_then(Pid::from_raw) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None) | Err(Errno::INTR))
}

/// How a process ended, in words; nothing where it ended well.
pub(crate) fn bad_end(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (_, signal) => Some(format!("signal {}", signal.unwrap_or(0))),
    }
}
