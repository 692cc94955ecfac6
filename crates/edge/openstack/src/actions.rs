//! What the cloud itself recorded of an operation (`os-instance-actions`): when its conductor, scheduler and compute host had it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;
use virtbench_https::Limit;

use crate::client::OpenStack;
use crate::error::OpenStackError;
use crate::fault::{Fault, FaultKind};
use crate::session::{Call, encoded};
use crate::time;

/// The action that a request began.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Action {
    start_time: Option<String>,
    updated_at: Option<String>,
    /// `Error` where it failed.
    message: Option<String>,
    events: Option<Vec<Event>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Event {
    event: String,
    start_time: Option<String>,
    finish_time: Option<String>,
    result: Option<String>,
    details: Option<String>,
}

/// How long services worked on an operation, by the cloud's own clock. MySQL keeps whole seconds of it, so that one operation's lengths are a second
/// off, and their mean over many is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// When it began, by the cloud's clock. What makes a server begins once the scheduler has found its host.
    pub begun: SystemTime,
    /// When the last service was done with it.
    pub ended: SystemTime,
    /// From when the API took it until the last of it was over.
    pub elapsed: Duration,
    /// While no service worked on it: it lay in a queue.
    pub queued: Duration,
    /// While the conductor did, with the scheduler's answer, where no event tells that apart; nothing where it has no event, as when a server is made.
    pub conductor: Option<Duration>,
    /// While the conductor waited for the scheduler; nothing where that has no event.
    pub scheduler: Option<Duration>,
    /// While hosts did.
    pub compute: Duration,
}

/// A span of time.
type Span = (SystemTime, SystemTime);

impl Event {
    fn span(&self) -> Option<Span> {
        let from = time::parse(self.start_time.as_deref()?)?;
        Some((from, time::parse(self.finish_time.as_deref()?)?.max(from)))
    }

    fn is_of_scheduler(&self) -> bool {
        self.event == "schedule_instances"
    }

    fn is_of_compute(&self) -> bool {
        self.event.starts_with("compute_")
    }
}

impl Action {
    fn events(&self) -> &[Event] {
        self.events.as_deref().unwrap_or_default()
    }

    /// Why it failed; nothing where it did not.
    pub fn fault(&self, request: &str) -> Option<Fault> {
        let failed = self.events().iter().find(|event| event.result.as_deref() == Some("Error"));
        if self.message.as_deref() != Some("Error") && failed.is_none() {
            return None;
        }
        let details = failed
            .and_then(|event| event.details.as_deref())
            .unwrap_or("the cloud gives no reason to this role");
        let at = failed.map(|event| format!("{} failed: ", event.event)).unwrap_or_default();
        Some(Fault::new(0, &format!("{at}{details}"), Some(request)))
    }

    /// Who worked for how long; nothing where the cloud shows no events.
    pub fn told(&self) -> Option<Told> {
        let spans = |wanted: &dyn Fn(&Event) -> bool| {
            self.events().iter().filter(|event| wanted(event)).filter_map(Event::span).collect::<Vec<_>>()
        };
        let all = spans(&|_| true);
        let last = all.iter().map(|(_, to)| *to).max()?;
        let begun = time::parse(self.start_time.as_deref()?)?;
        let updated = self.updated_at.as_deref().and_then(time::parse).unwrap_or(last);
        let elapsed = last.max(updated).duration_since(begun).unwrap_or_default();
        let scheduler = spans(&Event::is_of_scheduler);
        let compute = spans(&Event::is_of_compute);
        let conductor = spans(&|event: &Event| !event.is_of_compute() && !event.is_of_scheduler());
        let (conducts, schedules) = (!conductor.is_empty(), !scheduler.is_empty());
        // One waits for the other: what the other does is its time alone.
        let (computing, scheduling) = (covered(&compute), covered(&scheduler));
        let conducting =
            covered(&[conductor, compute, scheduler].concat()).saturating_sub(computing + scheduling);
        let queued = elapsed.saturating_sub(covered(&all));
        Some(Told {
            begun,
            ended: last,
            elapsed,
            queued,
            conductor: conducts.then_some(conducting),
            scheduler: schedules.then_some(scheduling),
            compute: computing,
        })
    }
}

/// The time that lies within any of these.
fn covered(spans: &[Span]) -> Duration {
    let mut spans = spans.to_vec();
    spans.sort();
    let (mut sum, mut until) = (Duration::ZERO, SystemTime::UNIX_EPOCH);
    for (from, to) in spans {
        sum += to.duration_since(from.max(until)).unwrap_or_default();
        until = until.max(to);
    }
    sum
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_are_told_apart_by_their_events() {
        let at = |second: u32| format!("2026-11-29T04:38:{second:02}.000000");
        let event = |name: &str, from, to| json!({"event": name, "start_time": at(from), "finish_time": at(to), "result": "Success"});
        let told = json!({
            "start_time": at(0), "updated_at": at(20), "message": null,
            "events": [
                event("compute_unshelve_instance", 10, 18),
                event("conductor_unshelve_instance", 2, 7),
                event("schedule_instances", 3, 6),
            ],
        });
        let action: Action = serde_json::from_value(told).unwrap();
        let seconds = Duration::from_secs;
        let expected = Told {
            begun: time::parse(&at(0)).unwrap(),
            ended: time::parse(&at(18)).unwrap(),
            elapsed: seconds(20),
            queued: seconds(7),
            conductor: Some(seconds(2)),
            scheduler: Some(seconds(3)),
            compute: seconds(8),
        };
        assert_eq!((action.told(), action.fault("r")), (Some(expected), None));
        assert_eq!(Action::default().told(), None);
    }

    #[test]
    fn a_failed_action_says_which_event_failed_and_why() {
        let told = json!({"message": "Error", "events": [
            {"event": "cold_migrate", "result": "Error", "details": "No valid host was found. No valid host found for cold migrate"},
        ]});
        let action: Action = serde_json::from_value(told).unwrap();
        let fault = action.fault("req-1").unwrap();
        assert_eq!(fault.kind, crate::fault::FaultKind::NoValidHost);
        assert!(fault.to_string().starts_with("cold_migrate failed: No valid host"), "{fault}");
        let silent: Action = serde_json::from_value(json!({"message": "Error"})).unwrap();
        assert!(silent.fault("r").unwrap().message.contains("no reason to this role"));
    }
}
