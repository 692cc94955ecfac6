//! The native environment: the very program that runs in guests, as a child on this host.

use std::path::PathBuf;

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::GuestFacts;

use crate::connection::{Connection, ConnectionError};
use crate::error::LabError;
use crate::machine::{Environment, Machine};
use crate::native_agent::NativeAgent;
use crate::process::MachineError;

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
    agent: NativeAgent,
}

impl NativeMachine {
    fn start(name: &str, target: PathBuf) -> Result<Self, MachineError> {
        let agent = NativeAgent::start("--fd", Vec::new(), |_| Ok(()))?;
        tracing::info!(name, process = agent.process.id(), target = %target.display(), "the native agent answers");
        Ok(Self { name: name.to_owned(), target, agent })
    }
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
