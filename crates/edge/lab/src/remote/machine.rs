//! An existing machine with an agent on it, over one ssh connection.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use virtbench_agent::protocol::{Greeting, TEST_FILE, TargetRef};
use virtbench_record::{GuestFacts, HostFacts};

use super::address::SshAddress;
use super::alive::Alive;
use super::login::{LoginError, log_in};
use super::script;
use super::turn::Turn;
use crate::agents::agents;
use crate::connection::{Connection, ConnectionError};
use crate::error::LabError;
use crate::machine::{Environment, Machine, OnProgress};
use crate::process::{AgentProcess, MachineError};

/// How long it may take from ssh's start to the agent's first word, the agent's transfer included.
const LOGIN_LIMIT: Duration = Duration::from_secs(120);
/// How long the agent may take to greet, and to end.
const LIMIT: Duration = Duration::from_secs(10);
/// How long ssh may take to say why it ended.
const END_LIMIT: Duration = Duration::from_secs(3);
/// ssh's own exit code when there is no connection.
const NO_CONNECTION: i32 = 255;
/// In what ssh says when the server hangs up before it has introduced itself.
const NO_GREETING: &str = "kex_exchange_identification";
/// What ssh is always told: nobody can be asked for anything, and a connection that is cut is noticed in 15 seconds.
const OPTIONS: [&str; 11] = [
    "-T",
    "-e",
    "none",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// Loads are applied to a file on an existing machine, or workloads keep files in a folder of it.
#[derive(Debug)]
pub struct Ssh {
    name: String,
    address: SshAddress,
    target: Target,
}

/// What is worked on, in the agent's folder.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// A test file of so many bytes.
    File(u64),
    /// The folder itself.
    Folder,
}

impl Ssh {
    /// The machine at `address`, on which a test file of `size_bytes` is made.
    #[must_use]
    pub fn new(name: &str, address: SshAddress, size_bytes: u64) -> Self {
        Self { name: name.to_owned(), address, target: Target::File(size_bytes) }
    }

    /// The machine at `address`, for workloads that keep files in the agent's folder.
    #[must_use]
    pub fn for_files(name: &str, address: SshAddress) -> Self {
        Self { name: name.to_owned(), address, target: Target::Folder }
    }

    fn connect(&self) -> Result<SshMachine, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "ssh".into(), source };
        let turn = Turn::wait();
        let (stream, other) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new("ssh");
        command.args(OPTIONS).args(self.address.ssh_arguments());
        command.arg("--").arg(script::command(&self.address, agents()));
        let mut process = AgentProcess::spawn_talking(command, OwnedFd::from(other), "ssh")?;
        log_in(&stream, agents(), LOGIN_LIMIT).map_err(|error| self.explain(error, &mut process))?;
        drop(turn);
        let mut connection = Connection::new(stream).map_err(failed)?;
        let greeting = connection.greet(LIMIT).map_err(|error| process.explain(error))?;
        let alive = Alive::begin(connection.sender()).map_err(failed)?;
        let facts = connection.facts(".").map_err(|error| process.explain(error))?;
        tracing::info!(name = self.name, address = %self.address, process = process.id(), "the remote agent answers");
        Ok(SshMachine {
            name: self.name.clone(),
            target: self.target,
            process,
            connection,
            greeting,
            notes: Vec::new(),
            facts,
            _alive: alive,
        })
    }

    /// What a login that came to nothing means.
    fn explain(&self, error: LoginError, process: &mut AgentProcess) -> MachineError {
        let address = &self.address;
        match error {
            LoginError::Unusable(why) => MachineError::Unreachable {
                why: format!("{address} cannot be used: {why}"),
                console: Vec::new(),
            },
            LoginError::Broken { error, last } => {
                let ended = process.ended_within(END_LIMIT);
                let command = format!("ssh {} true", address.ssh_arguments().join(" "));
                let dropped = |console: &[String]| console.iter().any(|line| line.contains(NO_GREETING));
                let why = match &ended {
                    Some((_, console)) if dropped(console) => format!(
                        "{address}: its ssh server dropped the connection before the login; too many may be logging in there at \
                         once (MaxStartups in its sshd_config), and `{command}` must work"
                    ),
                    Some((status, _)) if status.code() == Some(NO_CONNECTION) => {
                        format!(
                            "{address} cannot be reached; `{command}` must work without asking for anything"
                        )
                    }
                    Some(_) => {
                        format!("{address}: the login ended before the agent ran; does `{command}` work?")
                    }
                    None => {
                        format!("{address}: the login came to no agent ({error}); does `{command}` work?")
                    }
                };
                let mut console = ended.map(|(_, console)| console).unwrap_or_default();
                console.extend(Some(last).filter(|last| !last.is_empty()));
                MachineError::Unreachable { why, console }
            }
        }
    }
}

impl Environment for Ssh {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let machine = self.connect();
        let machine = machine.map_err(|source| LabError::Machine { machine: self.name.clone(), source })?;
        Ok(Box::new(machine))
    }
}

struct SshMachine {
    name: String,
    target: Target,
    process: AgentProcess,
    connection: Connection,
    greeting: Greeting,
    notes: Vec<String>,
    facts: HostFacts,
    _alive: Alive,
}

impl Machine for SshMachine {
    fn name(&self) -> &str {
        &self.name
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    fn target(&self) -> TargetRef {
        TargetRef::Path(match self.target {
            Target::File(_) => TEST_FILE.into(),
            Target::Folder => ".".into(),
        })
    }

    fn make_target(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), MachineError> {
        let Target::File(size_bytes) = self.target else { return Ok(()) };
        let made = self.connection.make_file(TEST_FILE, size_bytes, on_progress);
        self.notes = made.map_err(|error| self.process.explain(error))?;
        Ok(())
    }

    fn guest(&self) -> Option<GuestFacts> {
        None
    }

    fn facts(&self) -> Option<&HostFacts> {
        Some(&self.facts)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.iter().map(|note| format!("{}: {note}", self.name)).collect()
    }

    fn shares_host_clock(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.process.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.process.explain(error)
    }

    fn shut_down(mut self: Box<Self>) {
        let told = self.connection.shut_down().is_ok();
        tracing::info!(name = self.name, process = self.process.id(), told, "the remote agent ends");
        self.process.end_within(if told { LIMIT } else { Duration::ZERO });
    }
}
