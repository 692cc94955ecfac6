//! The native environment: the very program that runs in guests, as a child on this host, over a socket that it inherits.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use virtbench_agent::WITHOUT_VDSO;
use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_agents::own_agent;
use virtbench_record::GuestFacts;

use crate::connection::{Connection, ConnectionError};
use crate::descriptors::MemoryFile;
use crate::machine::{Environment, LabError, Machine};
use crate::process::{AgentProcess, MachineError};
use crate::translator::Translator;

/// Loads are applied to a file or device of this host.
#[derive(Debug)]
pub struct Native {
    name: String,
    target: PathBuf,
    without_vdso: bool,
    translator: Option<Translator>,
}

impl Native {
    /// Loads `target`, which must be UTF-8 to travel to the agent.
    #[must_use]
    pub fn new(name: &str, target: PathBuf) -> Self {
        Self { name: name.to_owned(), target, without_vdso: false, translator: None }
    }

    /// The same with an agent for which, and for whose programs, each reading of the clock is a system call, so that it is counted with the
    /// others.
    #[must_use]
    pub fn without_vdso(mut self) -> Self {
        self.without_vdso = true;
        self
    }

    /// The same with an agent whose programs run under this translator; the agent itself does not.
    #[must_use]
    pub fn translated(mut self, translator: Translator) -> Self {
        self.translator = Some(translator);
        self
    }
}

impl Environment for Native {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let machine = NativeMachine::start(self);
        let machine = machine.map_err(|source| LabError::Machine { machine: self.name.clone(), source })?;
        Ok(Box::new(machine))
    }
}

#[derive(Debug)]
struct NativeMachine {
    name: String,
    target: PathBuf,
    agent: NativeAgent,
}

impl NativeMachine {
    fn start(native: &Native) -> Result<Self, MachineError> {
        let Native { name, target, without_vdso, translator } = native;
        let program = own_agent()?;
        let agent = NativeAgent::start("--fd", Vec::new(), |command| {
            if *without_vdso {
                hide_vdso(command);
            }
            translator.as_ref().map_or_else(|| Ok(Vec::new()), |translator| translator.wrap(command, program))
        })?;
        tracing::info!(name, process = agent.process.id(), target = %target.display(), "the native agent answers");
        Ok(Self { name: name.clone(), target: target.clone(), agent })
    }
}

/// Has an agent's command run itself again without a vDSO.
fn hide_vdso(command: &mut Command) {
    let program = command.get_program().to_owned();
    let words = command.get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
    *command = Command::new(&program);
    command.arg(WITHOUT_VDSO).arg(&program).args(words);
}

impl Machine for NativeMachine {
    fn name(&self) -> &str {
        &self.name
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.agent.connection
    }

    fn greeting(&self) -> &Greeting {
        &self.agent.greeting
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
        vec![self.agent.process.id()]
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.agent.process.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.agent.process.explain(error)
    }

    fn shut_down(self: Box<Self>) {
        let (name, process) = (self.name, self.agent.process.id());
        let told = self.agent.shut_down();
        tracing::info!(name, process, told, "the native agent has ended");
    }
}

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
    /// changes the command before that, and gives what else is to be inherited.
    pub(crate) fn start(
        flag: &str,
        further: Vec<OwnedFd>,
        adapt: impl FnOnce(&mut Command) -> io::Result<Vec<OwnedFd>>,
    ) -> Result<Self, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "virtbench-agent".into(), source };
        let program = MemoryFile::new("virtbench-agent", own_agent()?).map_err(failed)?;
        let (program_fd, program_path) = program.lend().map_err(failed)?;
        let (mut connection, agent_end) = Connection::pair().map_err(failed)?;
        let mut command = Command::new(program_path);
        let mut inherited = vec![agent_end];
        inherited.extend(further);
        command.arg(flag).args(inherited.iter().map(|one| one.as_raw_fd().to_string()));
        inherited.extend(adapt(&mut command).map_err(failed)?);
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
