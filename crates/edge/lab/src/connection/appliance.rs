//! The part of the conversation that is about an appliance.

use std::time::{Duration, Instant};

use virtbench_agent::protocol::appliance::{ApplianceReply, ApplianceRequest, ServiceFailure};
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
