//! A machine without a guest: a thread of the test speaks for its agent.

use std::os::unix::net::UnixStream;
use std::thread;

use virtbench_agent::protocol::{Greeting, TargetRef, VERSION};
use virtbench_lab::{Connection, ConnectionError, Machine, MachineError};
use virtbench_record::{CrossingCost, GuestFacts};

/// A machine with a clock of its own.
pub(crate) struct FakeMachine {
    name: String,
    connection: Connection,
    greeting: Greeting,
}

impl FakeMachine {
    /// A machine named `vm1` whose agent is `play`, which gets the agent's end of the connection.
    pub(crate) fn boxed(play: impl FnOnce(UnixStream) + Send + 'static) -> Box<dyn Machine> {
        Self::named("vm1", play)
    }

    /// The same under another name.
    pub(crate) fn named(name: &str, play: impl FnOnce(UnixStream) + Send + 'static) -> Box<dyn Machine> {
        let (host, agent) = UnixStream::pair().unwrap();
        thread::spawn(move || play(agent));
        let greeting = Greeting {
            version: VERSION,
            kernel: String::new(),
            processors: 1,
            memory_bytes: 0,
            clock_source: String::new(),
            crossing: CrossingCost { system_call_ns: 0, page_fault_ns: 0 },
        };
        Box::new(Self { name: name.to_owned(), connection: Connection::new(host).unwrap(), greeting })
    }
}

impl Machine for FakeMachine {
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
        TargetRef::Path("target".into())
    }
    fn guest(&self) -> Option<GuestFacts> {
        None
    }
    fn shares_host_clock(&self) -> bool {
        false
    }
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }
    fn check(&mut self) -> Result<(), MachineError> {
        Ok(())
    }
    fn explain(&mut self, source: ConnectionError) -> MachineError {
        MachineError::Conversation { source, console: Vec::new() }
    }
    fn shut_down(self: Box<Self>) {}
}
