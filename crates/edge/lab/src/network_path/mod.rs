//! A network path between two agents: natively by a pair of Ethernet devices, to a guest, or between two guests.

mod path;

use std::time::Duration;

use virtbench_agent::protocol::network::{
    JoinOrder, NetworkOrder, NetworkOutcome, NetworkReply, NetworkRequest,
};
use virtbench_agent::protocol::{Reply, Request};
use virtbench_host::CpuSample;
use virtbench_record::{CrossingCost, HostUse};

pub use path::{EndProcessors, NetworkPath, PathGuest, PathKind, TrafficMeasured, vhost_device};

use crate::appliance::{ApplianceError, Reach};
use crate::connection::{Connection, ConnectionError, unexpected};
use crate::guest::{Guest, pin};
use crate::native::NativeAgent;
use crate::process::MachineError;
use crate::remote::{RemoteAgent, SshAddress};
use crate::uml::UmlGuest;

/// How long an agent may take for what takes no time, under emulation on a busy host.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Beyond the time that something passes: connecting, and what is still on its way.
const GRACE: Duration = Duration::from_secs(40);

/// Who runs the agent. Dropping it ends it.
#[derive(Debug)]
enum EndMachine {
    Native(Box<NativeAgent>),
    Guest(Box<Guest>),
    Uml(Box<UmlGuest>),
    Remote(Box<RemoteAgent>),
}

/// An agent at an end.
#[derive(Debug)]
struct End {
    name: &'static str,
    machine: EndMachine,
}

impl End {
    fn new(name: &'static str, machine: EndMachine) -> Self {
        Self { name, machine }
    }

    /// An agent on this host, in the network that `reach` leads to, held to these processors; to none where there are none.
    fn native(name: &'static str, reach: &Reach, processors: &[usize]) -> Result<Self, ApplianceError> {
        let started = NativeAgent::start("--fd", Vec::new(), |command| {
            reach.run_there(command);
            Ok(Vec::new())
        });
        let failed = |source| ApplianceError::Machine { name: name.into(), source };
        let agent = started.map_err(failed)?;
        let not_pinned = |source| MachineError::Start { program: "virtbench-agent".into(), source };
        pin(agent.process.id(), processors).map_err(not_pinned).map_err(failed)?;
        Ok(Self::new(name, EndMachine::Native(Box::new(agent))))
    }

    /// An agent on a machine that is reached by ssh.
    fn remote(name: &'static str, address: &SshAddress) -> Result<Self, ApplianceError> {
        let agent = RemoteAgent::start(name, address);
        let agent = agent.map_err(|source| ApplianceError::Machine { name: name.into(), source })?;
        Ok(Self::new(name, EndMachine::Remote(Box::new(agent))))
    }

    fn join(&mut self, order: JoinOrder) -> Result<(), ApplianceError> {
        match self.ask(NetworkRequest::Join(order), "join its network", ANSWER_LIMIT)? {
            NetworkReply::Joined => Ok(()),
            other => Err(self.failed(unexpected("join its network", &other))),
        }
    }

    /// Has it answer on ports of this number, or of another one where that is taken, which is returned.
    fn serve(&mut self, port: u16) -> Result<u16, ApplianceError> {
        match self.ask(NetworkRequest::Serve { port }, "answer the other end", ANSWER_LIMIT)? {
            NetworkReply::Served { port } => Ok(port),
            other => Err(self.failed(unexpected("answer the other end", &other))),
        }
    }

    /// Measures the path from here, and how busy this host's processors were while that counted.
    fn measure(&mut self, order: NetworkOrder) -> Result<(NetworkOutcome, Option<HostUse>), ApplianceError> {
        let ramp = Duration::from_nanos(order.ramp_ns) + GRACE;
        let before = match self.ask_any(NetworkRequest::Measure(order), "begin to measure", ramp)? {
            Reply::Measuring { .. } => CpuSample::take().ok(),
            other => return Err(self.failed(unexpected("begin to measure", &other))),
        };
        let limit = Duration::from_nanos(order.time_ns) + GRACE;
        let measured = match self.hear("measure the path", limit)? {
            Reply::Network(NetworkReply::Measured(outcome)) => outcome,
            other => return Err(self.failed(unexpected("measure the path", &other))),
        };
        let after = CpuSample::take().ok();
        Ok((measured, before.zip(after).map(|(before, after)| before.until(&after))))
    }

    fn crossing(&self) -> CrossingCost {
        match &self.machine {
            EndMachine::Native(agent) => agent.greeting.crossing,
            EndMachine::Guest(guest) => guest.greeting().crossing,
            EndMachine::Uml(guest) => guest.greeting().crossing,
            EndMachine::Remote(agent) => agent.greeting.crossing,
        }
    }

    fn process_id(&self) -> Option<u32> {
        if let EndMachine::Native(agent) = &self.machine { Some(agent.process.id()) } else { None }
    }

    /// Ends it in good order, within a time limit.
    fn shut_down(self) {
        match self.machine {
            EndMachine::Native(agent) => {
                agent.shut_down();
            }
            EndMachine::Guest(guest) => guest.shut_down(),
            EndMachine::Uml(guest) => guest.shut_down(),
            EndMachine::Remote(agent) => drop(agent),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        match &mut self.machine {
            EndMachine::Native(agent) => &mut agent.connection,
            EndMachine::Guest(guest) => guest.connection(),
            EndMachine::Uml(guest) => guest.connection(),
            EndMachine::Remote(agent) => &mut agent.connection,
        }
    }

    fn ask(
        &mut self,
        request: NetworkRequest,
        expected: &'static str,
        limit: Duration,
    ) -> Result<NetworkReply, ApplianceError> {
        match self.ask_any(request, expected, limit)? {
            Reply::Network(reply) => Ok(reply),
            other => Err(self.failed(unexpected(expected, &other))),
        }
    }

    fn ask_any(
        &mut self,
        request: NetworkRequest,
        expected: &'static str,
        limit: Duration,
    ) -> Result<Reply, ApplianceError> {
        self.connection().send(&Request::Network(request)).map_err(|error| self.failed(error))?;
        self.hear(expected, limit)
    }

    fn hear(&mut self, expected: &'static str, limit: Duration) -> Result<Reply, ApplianceError> {
        self.connection().receive(expected, limit).map_err(|error| self.failed(error))
    }

    fn failed(&mut self, error: ConnectionError) -> ApplianceError {
        let name = self.name.to_owned();
        match error {
            ConnectionError::Refused { message, .. } => ApplianceError::Refused { name, why: message },
            error => ApplianceError::Machine { name, source: self.explain(error) },
        }
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        match &mut self.machine {
            EndMachine::Native(agent) => agent.process.explain(error),
            EndMachine::Guest(guest) => guest.explain(error),
            EndMachine::Uml(guest) => guest.explain(error),
            EndMachine::Remote(agent) => agent.process.explain(error),
        }
    }
}
