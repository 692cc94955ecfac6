//! The native environment: the very program that runs in guests, as a child on this host.

use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::GuestFacts;

use crate::agents::own_agent;
use crate::connection::{Connection, ConnectionError};
use crate::error::LabError;
use crate::machine::{Environment, Machine};
use crate::memory_file::MemoryFile;
use crate::process::{AgentProcess, MachineError};

/// How long the agent may take to greet, and to end.
const LIMIT: Duration = Duration::from_secs(10);

/// Loads are applied to a file or device of this host.
#[derive(Debug)]
pub struct Native {
    name: String,
    target: PathBuf,
}

impl Native {
    /// Loads `target`, which must be UTF-8 to travel to the agent.
    #[must_use]
    pub fn new(name: &str, target: PathBuf) -> Self {
        Self { name: name.to_owned(), target }
    }
}

impl Environment for Native {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let machine = NativeMachine::start(&self.name, self.target.clone());
        let machine = machine.map_err(|source| LabError::Machine { machine: self.name.clone(), source })?;
        Ok(Box::new(machine))
    }
}

#[derive(Debug)]
struct NativeMachine {
    name: String,
    target: PathBuf,
    process: AgentProcess,
    connection: Connection,
    greeting: Greeting,
}

impl NativeMachine {
    fn start(name: &str, target: PathBuf) -> Result<Self, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "virtbench-agent".into(), source };
        let program = MemoryFile::new("virtbench-agent", own_agent()).map_err(failed)?;
        let (program_fd, program_path) = program.lend().map_err(failed)?;
        let (mut connection, agent_end) = Connection::pair().map_err(failed)?;
        let mut command = Command::new(program_path);
        command.args(["--fd", &agent_end.as_raw_fd().to_string()]);
        let mut process = AgentProcess::spawn(command, vec![agent_end, program_fd], "the native agent")?;
        let greeting = connection.greet(LIMIT).map_err(|error| process.explain(error))?;
        tracing::info!(name, process = process.id(), target = %target.display(), "the native agent answers");
        Ok(Self { name: name.to_owned(), target, process, connection, greeting })
    }
}

impl Machine for NativeMachine {
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
        TargetRef::Path(self.target.to_string_lossy().into_owned())
    }

    fn guest(&self) -> Option<GuestFacts> {
        None
    }

    fn shares_host_clock(&self) -> bool {
        true
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process.id()]
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.process.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.process.explain(error)
    }

    fn shut_down(mut self: Box<Self>) {
        let told = self.connection.shut_down().is_ok();
        tracing::info!(name = self.name, process = self.process.id(), told, "the native agent ends");
        self.process.end_within(if told { LIMIT } else { Duration::ZERO });
    }
}
