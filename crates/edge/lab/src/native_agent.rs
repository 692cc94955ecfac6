//! The agent as a child on this host, over a socket that it inherits.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use virtbench_agent::protocol::Greeting;
use virtbench_agents::own_agent;

use crate::connection::Connection;
use crate::memory_file::MemoryFile;
use crate::process::{AgentProcess, MachineError};

/// How long the agent may take to greet, and to end.
const LIMIT: Duration = Duration::from_secs(10);

/// A child that has greeted. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct NativeAgent {
    pub(crate) process: AgentProcess,
    pub(crate) connection: Connection,
    pub(crate) greeting: Greeting,
}

impl NativeAgent {
    /// Starts it with `flag`, before the number of its socket and those of the `further` descriptors that it inherits; `adapt`
    /// changes the command before that.
    pub(crate) fn start(
        flag: &str,
        further: Vec<OwnedFd>,
        adapt: impl FnOnce(&mut Command) -> io::Result<()>,
    ) -> Result<Self, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "virtbench-agent".into(), source };
        let program = MemoryFile::new("virtbench-agent", own_agent()?).map_err(failed)?;
        let (program_fd, program_path) = program.lend().map_err(failed)?;
        let (mut connection, agent_end) = Connection::pair().map_err(failed)?;
        let mut command = Command::new(program_path);
        let mut inherited = vec![agent_end];
        inherited.extend(further);
        command.arg(flag).args(inherited.iter().map(|one| one.as_raw_fd().to_string()));
        adapt(&mut command).map_err(failed)?;
        inherited.push(program_fd);
        let mut process = AgentProcess::spawn(command, inherited, "the native agent")?;
        let greeting = connection.greet(LIMIT).map_err(|error| process.explain(error))?;
        Ok(Self { process, connection, greeting })
    }

    /// Ends it in good order, within a time limit; says whether it could be told.
    pub(crate) fn shut_down(mut self) -> bool {
        let told = self.connection.shut_down().is_ok();
        self.process.end_within(if told { LIMIT } else { Duration::ZERO });
        told
    }
}
