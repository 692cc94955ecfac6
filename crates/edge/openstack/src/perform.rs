//! Operations, done and followed until their end.

use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use virtbench_https::{Limit, Polling};

use crate::client::OpenStack;
use crate::error::OpenStackError;
use crate::fault::{Fault, FaultKind};
use crate::looks::{OperationTimes, Parts, Until};
use crate::operation::{End, Operation};
use crate::server;
use crate::server::Server;
use crate::session::{Answered, Call, action, encoded};
use crate::things::Step;

/// How long a cloud that is back may take to show what it has done.
const SETTLE: Duration = Duration::from_secs(5);
/// Looks that may find a server with nothing being done, and not as it should be, until the cloud is asked what became of the request.
const IDLE_LOOKS: u32 = 3;
/// Lines of a console that are asked for.
const LINES: u32 = 10;
/// Tasks in which a host is being looked for.
const SCHEDULING: [&str; 2] = ["scheduling", "resize_prep"];

impl OpenStack {
    /// Does an operation on a server, whose id is empty where there is none, and waits until its effect is seen. Where the time went, also of one that
    /// failed; the id of what it made.
    pub fn perform(
        &self,
        server: &str,
        operation: &Operation<'_>,
        limit: Limit,
    ) -> (OperationTimes, Result<Option<String>, OpenStackError>) {
        self.perform_until(server, operation, Until::Seen, limit)
    }

    /// The same, followed as far as is said.
    pub fn perform_until(
        &self,
        server: &str,
        operation: &Operation<'_>,
        until: Until,
        limit: Limit,
    ) -> (OperationTimes, Result<Option<String>, OpenStackError>) {
        let begun = Instant::now();
        let mut times = OperationTimes::default();
        let result = self.steps(server, operation, (until, limit), &mut times);
        times.client = begun.elapsed().saturating_sub(times.elsewhere());
        (times, result)
    }

    fn steps(
        &self,
        server: &str,
        operation: &Operation<'_>,
        (until, limit): (Until, Limit),
        times: &mut OperationTimes,
    ) -> Result<Option<String>, OpenStackError> {
        let (mut id, mut made) = (server.to_owned(), None);
        for (call, end) in operation.steps(server) {
            let begun = Instant::now();
            let answered = match self.session.call(&call, limit) {
                Err(error @ OpenStackError::Unreachable { was_sent: true, .. }) => {
                    times.retries += 1;
                    let found = self.after_outage(&id, operation, end, limit);
                    times.accepted += begun.elapsed();
                    made = found?.ok_or(error)?;
                    continue;
                }
                answered => answered.inspect_err(|_| times.accepted += begun.elapsed())?,
            };
            times.accepted += answered.waited;
            times.retries += answered.retries;
            times.was_accepted = true;
            times.request = times.request.take().or_else(|| answered.request.clone());
            if let Some(new) = self.made(&call, operation, &answered)? {
                if matches!(operation, Operation::Create(_)) {
                    id.clone_from(&new);
                }
                made = Some(new);
            }
            let request = answered.request.as_deref();
            let step = Step { server: &id, request, name: call.to_string() };
            self.until_its_end(&step, end, made.as_deref().or(operation.thing()), limit, times)?;
        }
        times.was_over = true;
        if until == Until::Done {
            return Ok(made);
        }
        let begun = Instant::now();
        let is_heard = operation.starts_a_guest().then(|| self.hear(&id, limit)).transpose();
        let elapsed = begun.elapsed();
        // Where no guest starts, the last look has seen the effect.
        times.seen = match is_heard {
            Ok(Some(false)) => None,
            Ok(None) => Some(Duration::ZERO),
            Ok(Some(true)) | Err(_) => Some(elapsed),
        };
        is_heard.map(|_| made)
    }

    /// The id of what a call made, if it makes something.
    fn made(
        &self,
        call: &Call,
        operation: &Operation<'_>,
        answered: &Answered,
    ) -> Result<Option<String>, OpenStackError> {
        let place = match operation {
            Operation::Create(_) => "/server/id",
            Operation::CreateImage { .. } => "/image_id",
            Operation::CreateVolume { .. } => "/volume/id",
            Operation::AttachPort { .. } => "/interfaceAttachment/port_id",
            _ => return Ok(None),
        };
        let body: Value = self.session.read(call, answered)?;
        let id = body.pointer(place).and_then(Value::as_str);
        id.map(|id| Some(id.to_owned()))
            .ok_or_else(|| self.session.garbled(call, "it names nothing that was made"))
    }

    /// Whether a call whose connection broke was carried out all the same; with what it made.
    fn after_outage(
        &self,
        server: &str,
        operation: &Operation<'_>,
        end: End,
        limit: Limit,
    ) -> Result<Option<Option<String>>, OpenStackError> {
        // Somebody answers again, or the outage lasts.
        self.session.through_outages(&Call::get(""), limit)?;
        let settled = Limit::at(Instant::now() + SETTLE.min(limit.left()));
        let mut times = OperationTimes::default();
        match operation {
            Operation::Create(new) => {
                let path = format!("servers/detail?name={}", encoded(&format!("^{}$", new.name)));
                let mut found = None;
                server::each(&self.session, &Call::get(path), limit, |server: Server| {
                    found = Some(server.id).filter(|_| server.name == new.name).or(found.take());
                })?;
                let Some(id) = found else { return Ok(None) };
                let step = Step { server: &id, request: None, name: "POST servers".into() };
                self.until_its_end(&step, end, None, limit, &mut times)?;
                Ok(Some(Some(id)))
            }
            // These leave a server as it was, or make what nobody can tell from others.
            Operation::Reboot
            | Operation::CreateVolume { .. }
            | Operation::AttachPort { .. }
            | Operation::LiveMigrate
            | Operation::Rebuild { .. }
            | Operation::CreateImage { .. }
            | Operation::Note { .. }
            | Operation::Console => Ok(None),
            _ => {
                let step = Step { server, request: None, name: String::new() };
                let thing = operation.thing();
                Ok(self.until_its_end(&step, end, thing, settled, &mut times).is_ok().then_some(None))
            }
        }
    }

    /// `thing` is the id of the image, the volume or the port that it is about.
    fn until_its_end(
        &self,
        step: &Step<'_>,
        end: End,
        thing: Option<&str>,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), OpenStackError> {
        let thing = thing.unwrap_or_default();
        match end {
            End::Answered => Ok(()),
            End::Settled(states) => self.follow(step, Some(states), limit, times),
            End::Gone => self.follow(step, None, limit, times),
            End::ImageMade => {
                // In either order: the image is whole before Nova has let go of the server, or after.
                self.follow(step, Some(&[]), limit, times)?;
                self.image_is(step, thing, true, limit, times)
            }
            End::ImageGone => self.image_is(step, thing, false, limit, times),
            End::VolumeIs(status) => self.volume_is(step, thing, Some(status), limit, times),
            End::VolumeGone => self.volume_is(step, thing, None, limit, times),
            End::PortIs(is_there) => self.port_is(step, thing, is_there, limit, times),
        }
    }

    /// Follows a server until nothing is done with it and it has one of these states, any where there are none; or until it is gone, without
    /// states.
    fn follow(
        &self,
        step: &Step<'_>,
        states: Option<&[&str]>,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), OpenStackError> {
        let (polling, begun, followed) = (Polling::start(), Instant::now(), self.watch.follow(step.server));
        let (mut parts, mut idle, mut after) = (Parts::default(), 0, begun);
        let mut last = None;
        thread::sleep(self.watch.pace.first().min(limit.left()));
        let result = loop {
            let look = match followed.look(&self.session, after, limit) {
                Err(OpenStackError::Late { limit, .. }) => {
                    break Err(OpenStackError::Late { what: step.name.clone(), limit, last });
                }
                look => look?,
            };
            match judged(look.server.as_ref(), states) {
                Judged::Over => break Ok(()),
                Judged::Gone => {
                    let fault = Fault::new(404, "the server is gone", step.request);
                    break Err(OpenStackError::Fault { what: step.name.clone(), fault });
                }
                Judged::Failed(fault) => {
                    let fault = Fault::new(fault.code, &fault.message, step.request);
                    break Err(OpenStackError::Fault { what: step.name.clone(), fault });
                }
                Judged::Idle => {
                    idle += 1;
                    if idle >= IDLE_LOOKS
                        && let Some(fault) = self.action_fault(step, limit)?
                    {
                        break Err(OpenStackError::Fault { what: step.name.clone(), fault });
                    }
                }
                Judged::UnderWay { schedules } => {
                    idle = 0;
                    parts.saw(look.asked.saturating_duration_since(begun), schedules);
                }
            }
            last = look.server.as_ref().map(Server::shown);
            let pause = self.watch.pace.pause(&polling, look.each);
            if limit.left() <= pause {
                break Err(OpenStackError::Late { what: step.name.clone(), limit: limit.length(), last });
            }
            thread::sleep(pause);
            // An answer that another operation asked for during the pause has this server too.
            after = Instant::now().checked_sub(pause / 2).unwrap_or(begun).max(begun);
        };
        parts.add_to(times, begun.elapsed());
        result
    }

    /// Waits until a guest's console shows something. Whether consoles can be read here.
    fn hear(&self, server: &str, limit: Limit) -> Result<bool, OpenStackError> {
        if self.silent_consoles().is_some() {
            return Ok(false);
        }
        let polling = Polling::start();
        let call = action(server, "os-getConsoleOutput", json!({ "length": LINES }));
        loop {
            let asked = Instant::now();
            match self.session.call(&call, limit) {
                Ok(answered) => {
                    let told: Value = self.session.read(&call, &answered)?;
                    if told["output"].as_str().is_some_and(|output| !output.trim().is_empty()) {
                        return Ok(true);
                    }
                }
                Err(error) if matches!(error.fault(), Some(FaultKind::NotFound | FaultKind::Conflict)) => {}
                Err(OpenStackError::Fault { fault, .. }) => {
                    let why = format!("no console can be read: {}", fault.message);
                    *self.silent_consoles.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
            let pause = polling.pause(asked.elapsed());
            if limit.left() <= pause {
                let what = "a guest whose console shows something".to_owned();
                return Err(OpenStackError::NotSeen { what, limit: limit.length() });
            }
            thread::sleep(pause);
        }
    }

    /// Why consoles tell nothing of guests; nothing as long as they may.
    #[must_use]
    pub fn silent_consoles(&self) -> Option<String> {
        self.silent_consoles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn action_fault(
        &self,
        step: &Step<'_>,
        limit: Limit,
    ) -> Result<Option<Fault>, OpenStackError> {
        let Some(request) = step.request else { return Ok(None) };
        match self.failure_of(step.server, request, limit) {
            Err(error) if error.fault() == Some(FaultKind::Denied) => Ok(None),
            found => found,
        }
    }
}

/// How far an operation is, by how its server was found.
#[derive(Debug, PartialEq, Eq)]
enum Judged<'a> {
    Over,
    Gone,
    Failed(&'a crate::server::ServerFault),
    /// Nothing is done with it, and it is not as it should be.
    Idle,
    UnderWay {
        schedules: bool,
    },
}

fn judged<'a>(server: Option<&'a Server>, states: Option<&[&str]>) -> Judged<'a> {
    static UNKNOWN: crate::server::ServerFault =
        crate::server::ServerFault { code: 0, message: String::new() };
    let Some(server) = server else {
        return if states.is_none() { Judged::Over } else { Judged::Gone };
    };
    let is_as_wanted =
        states.is_some_and(|states| states.is_empty() || states.contains(&server.status.as_str()));
    match (&server.task, server.status.as_str()) {
        (Some(task), _) => Judged::UnderWay { schedules: SCHEDULING.contains(&task.as_str()) },
        (None, "ERROR") => Judged::Failed(server.fault.as_ref().unwrap_or(&UNKNOWN)),
        (None, _) if is_as_wanted => Judged::Over,
        // Between two tasks.
        (None, "BUILD" | "RESIZE" | "MIGRATING" | "REBUILD" | "REBOOT" | "HARD_REBOOT") => {
            Judged::UnderWay { schedules: false }
        }
        _ => Judged::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(status: &str, task: Option<&str>) -> Server {
        Server { status: status.into(), task: task.map(str::to_owned), ..Server::default() }
    }

    #[test]
    fn how_far_an_operation_is_follows_from_state_and_task() {
        let judge = |status: &str, task: Option<&str>, states: Option<&[&str]>| {
            format!("{:?}", judged(Some(&server(status, task)), states))
        };
        let active: Option<&[&str]> = Some(&["ACTIVE"]);
        assert_eq!(judge("BUILD", Some("scheduling"), active), "UnderWay { schedules: true }");
        assert_eq!(judge("BUILD", None, active), "UnderWay { schedules: false }", "between two tasks");
        assert_eq!(judge("ACTIVE", Some("migrating"), active), "UnderWay { schedules: false }");
        assert_eq!(judge("ACTIVE", None, active), "Over");
        assert_eq!(judge("SHUTOFF", None, active), "Idle");
        assert_eq!(judge("SHUTOFF", None, Some(&[])), "Over", "whatever it is");
        assert!(judge("ERROR", None, active).starts_with("Failed"));
        assert_eq!(judge("ACTIVE", None, None), "Idle", "it should go");
        assert_eq!((judged(None, None), judged(None, active)), (Judged::Over, Judged::Gone));
    }
}
