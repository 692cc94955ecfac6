//! What the cloud itself recorded of operations, asked for.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use virtbench_https::Limit;

use crate::actions::{Action, Told};
use crate::client::OpenStack;
use crate::error::OpenStackError;
use crate::fault::{Fault, FaultKind};
use crate::session::{Call, encoded};

impl OpenStack {
    /// What the cloud itself recorded of a request for a server.
    ///
    /// # Errors
    /// Why it does not tell.
    pub fn told(&self, server: &str, request: &str, limit: Limit) -> Result<Told, String> {
        let known =
            |hidden: &Mutex<Option<String>>| hidden.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(why) = known(&self.hidden_actions) {
            return Err(why);
        }
        match self.action(server, request, limit) {
            Ok(Some(action)) => action.told().ok_or_else(|| "the cloud shows this role no events".to_owned()),
            Ok(None) => Err("the cloud has no record of the request".to_owned()),
            Err(error) => {
                let why = format!("actions of servers cannot be read: {error}");
                if error.fault() == Some(FaultKind::Denied) {
                    *self.hidden_actions.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
                }
                Err(why)
            }
        }
    }

    /// What the cloud recorded of all that was done with a server, which may be gone, by the names of the actions, the last first.
    ///
    /// # Errors
    /// It does not tell, or the role may not know.
    pub fn actions_of(
        &self,
        server: &str,
        limit: Limit,
    ) -> Result<Vec<(String, Option<Told>)>, OpenStackError> {
        let call = Call::get(format!("servers/{}/os-instance-actions", encoded(server)));
        let (listed, _) = self.session.get::<Value>(&call, limit)?;
        let listed = listed["instanceActions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut actions = Vec::new();
        for one in listed {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            if let Some(action) = self.action(server, text("request_id"), limit)? {
                actions.push((text("action").to_owned(), action.told()));
            }
        }
        Ok(actions)
    }

    /// Why an operation failed that left its server as it was; nothing where the cloud tells of no failure.
    ///
    /// # Errors
    /// The cloud does not answer.
    pub fn failure_of(
        &self,
        server: &str,
        request: &str,
        limit: Limit,
    ) -> Result<Option<Fault>, OpenStackError> {
        Ok(self.action(server, request, limit)?.and_then(|action| action.fault(request)))
    }

    fn action(&self, server: &str, request: &str, limit: Limit) -> Result<Option<Action>, OpenStackError> {
        let path = format!("servers/{}/os-instance-actions/{}", encoded(server), encoded(request));
        match self.session.get::<Value>(&Call::get(path.as_str()), limit) {
            Ok((mut told, _)) => {
                let told = told["instanceAction"].take();
                serde_json::from_value(told)
                    .map(Some)
                    .map_err(|error| self.session.garbled(&Call::get(path), &error.to_string()))
            }
            Err(error) if error.fault() == Some(FaultKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
