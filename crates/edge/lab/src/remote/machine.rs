//! An existing machine with an agent on it.

use virtbench_agent::protocol::{Greeting, TEST_FILE, TargetRef};
use virtbench_record::{GuestFacts, HostFacts};

use super::address::SshAddress;
use super::remote_agent::RemoteAgent;
use crate::connection::{Connection, ConnectionError};
use crate::machine::{Environment, LabError, Machine, OnProgress};
use crate::process::MachineError;

/// Loads are applied to a file or whole disk of an existing machine, or workloads keep files in a folder of it.
#[derive(Debug)]
pub struct Ssh {
    name: String,
    address: SshAddress,
    target: Target,
}

/// What is worked on.
#[derive(Debug, Clone)]
enum Target {
    /// A test file of so many bytes in the agent's folder.
    File(u64),
    /// The agent's folder itself.
    Folder,
    /// A whole disk.
    Device { path: String, may_overwrite: bool },
}

impl Ssh {
    /// The machine at `address`, on which a test file of `size_bytes` is made, unless the address names a whole disk.
    #[must_use]
    pub fn new(name: &str, address: SshAddress, size_bytes: u64) -> Self {
        let target = match address.device() {
            Some((path, may_overwrite)) => Target::Device { path: path.to_owned(), may_overwrite },
            None => Target::File(size_bytes),
        };
        Self { name: name.to_owned(), address, target }
    }

    /// The machine at `address`, for workloads that keep files in the agent's folder.
    #[must_use]
    pub fn for_files(name: &str, address: SshAddress) -> Self {
        Self { name: name.to_owned(), address, target: Target::Folder }
    }

    fn connect(&self) -> Result<SshMachine, MachineError> {
        if let Target::Folder = self.target
            && let Err(error) = self.address.clone().without_device()
        {
            return Err(MachineError::Lacking { why: error.to_string() });
        }
        let mut agent = RemoteAgent::start(&self.name, &self.address)?;
        let facts = agent.connection.facts(".").map_err(|error| agent.process.explain(error))?;
        Ok(SshMachine {
            name: self.name.clone(),
            target: self.target.clone(),
            agent,
            notes: Vec::new(),
            facts,
        })
    }
}

impl Environment for Ssh {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let machine = self.connect();
        let machine = machine.map_err(|source| LabError::of(&self.name, source))?;
        Ok(Box::new(machine))
    }
}

struct SshMachine {
    name: String,
    target: Target,
    agent: RemoteAgent,
    notes: Vec<String>,
    facts: HostFacts,
}

impl Machine for SshMachine {
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
        match &self.target {
            Target::File(_) => TargetRef::Path(TEST_FILE.into()),
            Target::Folder => TargetRef::Path(".".into()),
            Target::Device { path, may_overwrite } => {
                TargetRef::Device { path: path.clone(), may_overwrite: *may_overwrite }
            }
        }
    }

    fn make_target(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), MachineError> {
        let Target::File(size_bytes) = self.target else { return Ok(()) };
        let made = self.agent.connection.make_file(TEST_FILE, size_bytes, on_progress);
        self.notes = made.map_err(|error| self.agent.process.explain(error))?;
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
        self.agent.process.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.agent.process.explain(error)
    }

    fn shut_down(self: Box<Self>) {}
}
