//! The parts of the conversation that are about appliances: one on this machine, and those that a machine of the user's runs natively.

use std::time::{Duration, Instant};

use virtbench_agent::protocol::appliance::{ApplianceReply, ApplianceRequest, ServiceFailure};
use virtbench_agent::protocol::appliance::{EncloseOrder, Enclosed, EnclosingReply, EnclosingRequest, Piece};
use virtbench_agent::protocol::{Reply, Request};

use super::{ANSWER_LIMIT, Connection, ConnectionError, unexpected};

impl Connection {
    /// Says something about an appliance.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) fn say(&mut self, request: ApplianceRequest) -> Result<(), ConnectionError> {
        self.send(&Request::Appliance(request))
    }

    /// What the agent says next of the appliance, within `limit`.
    ///
    /// # Errors
    /// `Refused` if it cannot do as it was told; anything else breaks the connection.
    pub(crate) fn hear(
        &mut self,
        expected: &'static str,
        limit: Duration,
    ) -> Result<ApplianceReply, ConnectionError> {
        match self.receive(expected, limit)? {
            Reply::Appliance(reply) => Ok(reply),
            other => Err(unexpected(expected, &other)),
        }
    }

    /// The next service that ended by itself, if there is one that was not told of. Only for a connection on which no answer is
    /// waited for.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) fn next_crash(&mut self) -> Result<Option<ServiceFailure>, ConnectionError> {
        while self.crashes.is_empty() && self.readable_within(Duration::ZERO)? {
            let until = Instant::now() + ANSWER_LIMIT;
            if let Some(reply) = self.receive_next("be quiet", until, ANSWER_LIMIT)? {
                return Err(unexpected("be quiet", &reply));
            }
        }
        Ok((!self.crashes.is_empty()).then(|| self.crashes.remove(0)))
    }
}

/// How long the machine may take to write a piece of a file.
const STORE_LIMIT: Duration = Duration::from_secs(60);

/// How long it may take to copy an appliance's data.
const ENCLOSE_LIMIT: Duration = Duration::from_secs(300);

impl Connection {
    /// Has the agent look whether appliances can be enclosed there and be on a bridge.
    ///
    /// # Errors
    /// `Refused` with the reason if not; anything else breaks the connection, here and below.
    pub(crate) fn check_bridge(&mut self, bridge: &str) -> Result<(), ConnectionError> {
        let request = EnclosingRequest::CheckBridge { bridge: bridge.to_owned() };
        match self.ask_enclosing(request, "look for a bridge", ANSWER_LIMIT)? {
            EnclosingReply::Checked => Ok(()),
            other => Err(unexpected("look for a bridge", &other)),
        }
    }

    /// Has the agent keep a piece of a file.
    ///
    /// # Errors
    /// `Refused` if it has no room.
    pub(crate) fn store(&mut self, piece: Piece) -> Result<(), ConnectionError> {
        match self.ask_enclosing(EnclosingRequest::Store(piece), "keep a piece of a file", STORE_LIMIT)? {
            EnclosingReply::Stored => Ok(()),
            other => Err(unexpected("keep a piece of a file", &other)),
        }
    }

    /// Has the agent enclose an appliance; who speaks from then on is an agent in there.
    ///
    /// # Errors
    /// `Refused` with the reason if it cannot.
    pub(crate) fn enclose(&mut self, order: EncloseOrder) -> Result<Enclosed, ConnectionError> {
        match self.ask_enclosing(EnclosingRequest::Enclose(order), "enclose an appliance", ENCLOSE_LIMIT)? {
            EnclosingReply::Enclosed(enclosed) => Ok(enclosed),
            other => Err(unexpected("enclose an appliance", &other)),
        }
    }

    fn ask_enclosing(
        &mut self,
        request: EnclosingRequest,
        expected: &'static str,
        limit: Duration,
    ) -> Result<EnclosingReply, ConnectionError> {
        self.send(&Request::Enclosing(request))?;
        match self.receive(expected, limit)? {
            Reply::Enclosing(reply) => Ok(reply),
            other => Err(unexpected(expected, &other)),
        }
    }
}
