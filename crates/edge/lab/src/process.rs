//! A process that runs an agent, and what its failures mean.

use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use thiserror::Error;
use virtbench_agent::Console;
use virtbench_agent::protocol::{FailureKind, ProtocolError};
use virtbench_agents::AgentError;

use crate::child::{BoundChild, describe_end};
use crate::connection::ConnectionError;
use crate::io_limit::IoLimitError;

/// How long a process that has hung up may take to end.
const END_LIMIT: Duration = Duration::from_secs(3);
/// What Linux writes when it gives up.
pub(crate) const PANIC: &str = "Kernel panic";

/// What went wrong with a machine. Where it may help, the last lines of its console are carried along.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum MachineError {
    /// Its process could not be started.
    #[error("{} could not be started: {source}; `virtbench doctor` shows what is missing", program.display())]
    Start {
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no agent that could be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Its I/Os cannot be limited.
    #[error(transparent)]
    IoLimit(#[from] IoLimitError),
    /// This host lacks what it needs.
    #[error("{why}")]
    Lacking {
        /// What, and what mends it.
        why: String,
    },
    /// It was not waited for, as everything is to stop.
    #[error("stopped")]
    Stopped,
    /// Its process has ended.
    #[error("{what} {how} while it was needed{}", tail(console))]
    Ended {
        /// Which process.
        what: &'static str,
        /// How, in words.
        how: String,
        /// The console's last lines.
        console: Vec<String>,
    },
    /// QEMU, or somebody at the hypervisor, has paused the guest for good.
    #[error("{state}{}{}", because(words.as_deref()), tail(console))]
    Paused {
        /// Who has, and in which state it is, in QEMU's word.
        state: String,
        /// The line in which QEMU says why.
        words: Option<String>,
        /// The console's last lines.
        console: Vec<String>,
    },
    /// The guest's kernel gave up.
    #[error("the guest's kernel panicked{}{}", because(words.as_deref()), tail(console))]
    Panicked {
        /// The line in which it says why. What follows may be longer than what is kept of the console's lines.
        words: Option<String>,
        /// The console's last lines.
        console: Vec<String>,
    },
    /// A machine cannot be reached, or no agent runs there.
    #[error("{why}{}", said(console))]
    Unreachable {
        /// Why, and what to do.
        why: String,
        /// What ssh and the login said.
        console: Vec<String>,
    },
    /// The agent did not answer in time, or did not keep to the protocol.
    #[error("{source}{}", tail(console))]
    Conversation {
        /// What went wrong.
        source: ConnectionError,
        /// The console's last lines.
        console: Vec<String>,
    },
    /// The agent is well but could not do as it was asked.
    #[error("{message}")]
    Refused {
        /// What kind of failure.
        kind: FailureKind,
        /// Why, for the user.
        message: String,
    },
}

impl MachineError {
    /// That of a guest on whose console stands [`PANIC`].
    pub(crate) fn panicked(console: &Console) -> Self {
        let line = console.line_with(PANIC).unwrap_or_default();
        let words = line.split_once(PANIC).map(|(_, why)| why.trim_start_matches(" - not syncing:").trim());
        let words = words.filter(|words| !words.is_empty()).map(str::to_owned);
        Self::Panicked { words, console: console.tail() }
    }
}

fn because(words: Option<&str>) -> String {
    words.map_or_else(String::new, |words| format!(": {words}"))
}

/// The last words of a process: an assertion says where it was, and the line before it why.
pub(crate) fn last_words(console: &[String]) -> Option<String> {
    let last = console.last()?.trim_end_matches('.');
    let before = console.len().checked_sub(2).and_then(|place| console.get(place));
    Some(match before.filter(|_| last.contains("Assertion ")) {
        Some(before) => format!("{}: {last}", before.trim_end_matches('.')),
        None => last.to_owned(),
    })
}

fn tail(console: &[String]) -> String {
    if console.is_empty() {
        return "; its console is empty".into();
    }
    format!("; the last lines of its console:\n  | {}", console.join("\n  | "))
}

fn said(console: &[String]) -> String {
    if console.is_empty() { String::new() } else { format!(":\n  | {}", console.join("\n  | ")) }
}

/// A child with its output. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    child: BoundChild,
    console: Console,
    what: &'static str,
}

impl AgentProcess {
    /// Starts `command`, which errors call `what`, with its standard streams collected and the
    /// descriptors `inherited`.
    pub(crate) fn spawn(
        command: Command,
        inherited: Vec<OwnedFd>,
        what: &'static str,
    ) -> Result<Self, MachineError> {
        Self::start(command, what, BoundChild::spawn, |command, writer| {
            command.stdin(Stdio::null()).stdout(writer.try_clone()?);
            Ok(inherited)
        })
    }

    /// The same of a program whose own processes would outlive it: see [`BoundChild::spawn_guarded`].
    pub(crate) fn spawn_guarded(
        command: Command,
        inherited: Vec<OwnedFd>,
        what: &'static str,
    ) -> Result<Self, MachineError> {
        Self::start(command, what, BoundChild::spawn_guarded, |command, writer| {
            command.stdin(Stdio::null()).stdout(writer.try_clone()?);
            Ok(inherited)
        })
    }

    /// The same of a program that talks over its standard streams, whose other end is `stream`; what it says on stderr is
    /// collected.
    pub(crate) fn spawn_talking(
        command: Command,
        stream: OwnedFd,
        what: &'static str,
    ) -> Result<Self, MachineError> {
        Self::start(command, what, BoundChild::spawn, |command, _| {
            command.stdin(stream.try_clone()?).stdout(stream);
            Ok(Vec::new())
        })
    }

    fn start(
        mut command: Command,
        what: &'static str,
        spawn: fn(Command, Vec<OwnedFd>) -> io::Result<BoundChild>,
        streams: impl FnOnce(&mut Command, &PipeWriter) -> io::Result<Vec<OwnedFd>>,
    ) -> Result<Self, MachineError> {
        let program = PathBuf::from(command.get_program());
        let start = move || -> io::Result<Self> {
            let (reader, writer) = io::pipe()?;
            let inherited = streams(&mut command, &writer)?;
            command.stderr(writer);
            let words = format!("{command:?}");
            let child = spawn(command, inherited)?;
            tracing::debug!(process = child.id(), %words, "{what} started");
            Ok(Self { child, console: Console::collect(reader)?, what })
        };
        start().map_err(|source| MachineError::Start { program, source })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    /// How it ended, if it has or does within `limit`, with its last words.
    pub(crate) fn ended_within(&mut self, limit: Duration) -> Option<(ExitStatus, Vec<String>)> {
        let status = self.child.wait_within(limit).ok().flatten()?;
        self.console.settle(END_LIMIT);
        Some((status, self.console.tail()))
    }

    /// Whether it still runs; if not, why.
    pub(crate) fn check(&mut self) -> Result<(), MachineError> {
        match self.child.wait_within(Duration::ZERO) {
            Ok(None) => Ok(()),
            _ => Err(self.explain(ProtocolError::Closed.into())),
        }
    }

    /// Says what a broken conversation means, by what became of the process and stands on its console.
    pub(crate) fn explain(&mut self, error: ConnectionError) -> MachineError {
        match error {
            ConnectionError::Refused { kind, message } => return MachineError::Refused { kind, message },
            ConnectionError::Stopped => return MachineError::Stopped,
            _ => {}
        }
        let hung_up =
            matches!(error, ConnectionError::Protocol(ProtocolError::Closed | ProtocolError::Io(_)));
        let limit = if hung_up { END_LIMIT } else { Duration::ZERO };
        let end = self.child.wait_within(limit).ok().flatten();
        if end.is_some() {
            self.console.settle(END_LIMIT);
        }
        let console = self.console.tail();
        tracing::warn!(process = self.child.id(), %error, end = ?end, "the conversation with {} broke", self.what);
        match end {
            _ if self.console.contains(PANIC) => MachineError::panicked(&self.console),
            Some(status) => MachineError::Ended { what: self.what, how: describe_end(status), console },
            None => MachineError::Conversation { source: error, console },
        }
    }

    /// Waits for its end, then asks for it by SIGTERM, then kills it.
    pub(crate) fn end_within(&mut self, limit: Duration) {
        let what = self.what;
        if let Ok(Some(status)) = self.child.wait_within(limit) {
            return tracing::debug!(process = self.child.id(), "{what} {}", describe_end(status));
        }
        tracing::warn!(process = self.child.id(), ?limit, "{what} did not end by itself and is told to");
        self.child.terminate();
        let _ = self.child.wait_within(END_LIMIT);
    }
}
