//! What can be asked of a cluster, and done there.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use virtbench_https::{Limit, Polling, Secret};

use crate::address::Address;
use crate::effect::{Disk, Effect, power};
use crate::error::{FaultKind, ProxmoxError};
use crate::inventory::{Machine, Node, Place, Power, Storage, is_true, outer_address};
use crate::operation::{Operation, free_slot};
use crate::session::{Answered, Call, Session, encoded};
use crate::task;
use crate::task::Upid;

/// How long a server that is back may take to show what it has done.
const SETTLE: Duration = Duration::from_secs(5);

/// Where the time of an operation went. The end of a task is known to one look: what lies between the last one that found it
/// running and the one that found it over counts to `done`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// What this program needed.
    pub client: Duration,
    /// Until the server had accepted it.
    pub accepted: Duration,
    /// While its task ran, and was seen to.
    pub running: Duration,
    /// Until its end was known.
    pub done: Duration,
    /// Until its effect was seen.
    pub seen: Duration,
    /// How often something was asked again.
    pub retries: u32,
    /// Whether the server accepted it.
    pub was_accepted: bool,
    /// Whether its task ended.
    pub was_over: bool,
}

/// A cluster, or a node by itself, by one node's API.
pub struct Proxmox {
    session: Session,
    version: String,
}

impl fmt::Debug for Proxmox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxmox({})", self.version)
    }
}

impl Proxmox {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached or trusted, or refuses the user.
    pub fn connect(address: &Address, secret: Secret, limit: Limit) -> Result<Self, ProxmoxError> {
        let session = Session::open(address, secret, limit)?;
        let about = session.call(&Call::get("version"), limit)?.value;
        let version = about["version"].as_str().unwrap_or("of an unknown version").chars().take(40).collect();
        Ok(Self { session, version })
    }

    /// The version of the server's software, such as `9.0.3`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The nodes that are online, by name.
    ///
    /// # Errors
    /// The server does not say.
    pub fn nodes(&self, limit: Limit) -> Result<Vec<Node>, ProxmoxError> {
        let mut nodes = self.list(&Call::get("nodes"), limit, Node::read)?.0;
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(nodes)
    }

    /// The storages of a node that take disks of VMs.
    ///
    /// # Errors
    /// The server does not say.
    pub fn storages(&self, node: &str, limit: Limit) -> Result<Vec<Storage>, ProxmoxError> {
        let call = Call::get(format!("nodes/{}/storage", encoded(node))).with("content", "images");
        self.list(&call, limit, Storage::read).map(|(storages, _)| storages)
    }

    /// All VMs that the user may see.
    ///
    /// # Errors
    /// The server does not say.
    pub fn machines(&self, limit: Limit) -> Result<Vec<Machine>, ProxmoxError> {
        self.timed_machines(limit).map(|(machines, _)| machines)
    }

    /// All VMs, and where the time went.
    ///
    /// # Errors
    /// The server does not say.
    pub fn timed_machines(&self, limit: Limit) -> Result<(Vec<Machine>, OperationTimes), ProxmoxError> {
        let begun = Instant::now();
        let call = Call::get("cluster/resources").with("type", "vm");
        let (machines, answered) = self.list(&call, limit, Machine::read)?;
        let times = OperationTimes {
            client: begun.elapsed().saturating_sub(answered.waited),
            accepted: answered.waited,
            retries: answered.retries,
            was_accepted: true,
            ..OperationTimes::default()
        };
        Ok((machines, times))
    }

    /// Whether a VM runs; nothing where it is not there.
    ///
    /// # Errors
    /// The server does not say.
    pub fn power(&self, place: &Place, limit: Limit) -> Result<Option<Power>, ProxmoxError> {
        let question = Effect::Exists.question(place);
        self.unless_gone(&question, limit).map(|status| status.map(|status| power(&status)))
    }

    /// What is written on a VM; nothing where it is not there.
    ///
    /// # Errors
    /// The server does not say.
    pub fn description(&self, place: &Place, limit: Limit) -> Result<Option<String>, ProxmoxError> {
        let question = Effect::Description(String::new()).question(place);
        let settings = self.unless_gone(&question, limit)?;
        Ok(settings.map(|settings| settings["description"].as_str().unwrap_or_default().to_owned()))
    }

    /// A place for one more disk of a VM; nothing where all are taken.
    ///
    /// # Errors
    /// The server does not say, or the VM is gone.
    pub fn free_slot(&self, place: &Place, limit: Limit) -> Result<Option<u32>, ProxmoxError> {
        let pending = self.session.through_outages(&Effect::Disk("", true).question(place), limit)?.value;
        Ok(free_slot(pending.as_array().into_iter().flatten().filter_map(|entry| entry["key"].as_str())))
    }

    /// The first disk of a VM; nothing where it has none, or does not say where it lies and how large it is.
    ///
    /// # Errors
    /// The server does not say, or the VM is gone.
    pub fn first_disk(&self, place: &Place, limit: Limit) -> Result<Option<Disk>, ProxmoxError> {
        let question = Effect::Description(String::new()).question(place);
        Ok(Disk::first(&self.session.through_outages(&question, limit)?.value))
    }

    /// The address of a guest, as its agent tells it: waited for.
    ///
    /// # Errors
    /// The server does not say, or the guest has told none by then.
    pub fn guest_address(&self, place: &Place, limit: Limit) -> Result<String, ProxmoxError> {
        let path = format!("nodes/{}/qemu/{}/agent/network-get-interfaces", encoded(&place.node), place.vmid);
        let question = Call::get(path);
        self.until("a guest whose agent tells its address", limit, || {
            let begun = Instant::now();
            match self.session.call(&question, limit) {
                Ok(answered) => Ok((outer_address(&answered.value), answered.waited)),
                Err(ProxmoxError::Fault { .. }) => Ok((None, begun.elapsed())),
                Err(error) => Err(error),
            }
        })
    }

    /// A number that no VM has at the moment.
    ///
    /// # Errors
    /// The server does not say.
    pub fn next_number(&self, limit: Limit) -> Result<u32, ProxmoxError> {
        let call = Call::get("cluster/nextid");
        let value = self.session.through_outages(&call, limit)?.value;
        let number =
            value.as_u64().or_else(|| value.as_str()?.parse().ok()).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.session.garbled(&call, "it gives no number"))
    }

    /// Does an operation and waits until its effect is seen. Where the time went, also of one that failed.
    pub fn perform(
        &self,
        place: &Place,
        operation: &Operation<'_>,
        limit: Limit,
    ) -> (OperationTimes, Result<(), ProxmoxError>) {
        let begun = Instant::now();
        let mut times = OperationTimes::default();
        let result = self.steps(place, operation, limit, &mut times);
        let elsewhere = times.accepted + times.running + times.done + times.seen;
        times.client = begun.elapsed().saturating_sub(elsewhere);
        (times, result)
    }

    fn steps(
        &self,
        place: &Place,
        operation: &Operation<'_>,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), ProxmoxError> {
        let call = operation.call(place);
        let (shown, effect) = operation.effect(place);
        let begun = Instant::now();
        let answered = match self.session.call(&call, limit) {
            // It may have been done all the same.
            Err(error @ ProxmoxError::Unreachable { was_sent: true, .. }) => {
                let settled = Limit::at(Instant::now() + SETTLE.min(limit.left()));
                let seen = self.session.through_outages(&Call::get("version"), limit);
                let found = seen.and_then(|_| self.see(&shown, &effect, settled));
                (times.accepted, times.retries) = (begun.elapsed(), times.retries + 1);
                return found.map(drop).map_err(|_| error);
            }
            answered => answered.inspect_err(|_| times.accepted = begun.elapsed())?,
        };
        (times.accepted, times.retries, times.was_accepted) = (answered.waited, answered.retries, true);
        if let Some(upid) = answered.value.as_str().and_then(Upid::parse) {
            let begun = Instant::now();
            let ended =
                task::end(&self.session, &upid, limit).inspect_err(|_| times.done = begun.elapsed())?;
            (times.running, times.done) = (ended.running, ended.done);
            times.retries += ended.retries;
            ended.result.map_err(|fault| ProxmoxError::Fault { what: upid.kind().to_owned(), fault })?;
        }
        times.was_over = true;
        let begun = Instant::now();
        let seen = self.see(&shown, &effect, limit).and_then(|status| match operation {
            Operation::Start if is_true(&status["agent"]) => self.answers(&shown, limit),
            _ => Ok(()),
        });
        times.seen = begun.elapsed();
        seen
    }

    /// Waits until the server shows an effect; with what showed it.
    fn see(&self, place: &Place, effect: &Effect, limit: Limit) -> Result<Value, ProxmoxError> {
        let question = effect.question(place);
        self.until(effect.name(), limit, || match self.session.through_outages(&question, limit) {
            Ok(answered) => Ok((effect.shows(&answered.value).then_some(answered.value), answered.waited)),
            Err(error) if effect.is_shown_by(error.fault()) => Ok((Some(Value::Null), Duration::ZERO)),
            // It is on its way there.
            Err(error) if *effect == Effect::Exists && error.fault() == Some(FaultKind::NotFound) => {
                Ok((None, Duration::ZERO))
            }
            Err(error) => Err(error),
        })
    }

    /// Waits until the guest's agent answers.
    fn answers(&self, place: &Place, limit: Limit) -> Result<(), ProxmoxError> {
        let path = format!("nodes/{}/qemu/{}/agent/ping", encoded(&place.node), place.vmid);
        let ping = Call::of("POST", path, Vec::new());
        self.until("a guest whose agent answers", limit, || {
            let begun = Instant::now();
            match self.session.call(&ping, limit) {
                Ok(answered) => Ok((Some(()), answered.waited)),
                // The server says no as long as the guest does not answer.
                Err(ProxmoxError::Fault { .. }) => Ok((None, begun.elapsed())),
                Err(error) => Err(error),
            }
        })
    }

    /// Looks until there is something to be seen. A look says how long its answer took.
    fn until<T>(
        &self,
        what: &str,
        limit: Limit,
        mut look: impl FnMut() -> Result<(Option<T>, Duration), ProxmoxError>,
    ) -> Result<T, ProxmoxError> {
        let polling = Polling::start();
        loop {
            let (found, answered_in) = look()?;
            if let Some(found) = found {
                return Ok(found);
            }
            let pause = polling.pause(answered_in);
            if limit.left() <= pause {
                return Err(ProxmoxError::NotSeen { what: what.to_owned(), limit: limit.length() });
            }
            thread::sleep(pause);
        }
    }

    fn unless_gone(&self, question: &Call, limit: Limit) -> Result<Option<Value>, ProxmoxError> {
        match self.session.through_outages(question, limit) {
            Ok(answered) => Ok(Some(answered.value)),
            Err(error) if error.fault() == Some(FaultKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list<T>(
        &self,
        call: &Call,
        limit: Limit,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<(Vec<T>, Answered), ProxmoxError> {
        let answered = self.session.through_outages(call, limit)?;
        let entries = answered.value.as_array().ok_or_else(|| self.session.garbled(call, "it is no list"))?;
        Ok((entries.iter().filter_map(read).collect(), answered))
    }
}

impl Drop for Proxmox {
    fn drop(&mut self) {
        self.session.close();
    }
}
