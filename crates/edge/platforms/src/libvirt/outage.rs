//! After an outage: connecting again, and finding out what became of the operation that it cut off.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::Keeper;
use virtbench_libvirt::ErrorKind;
use virtbench_operations::VmState;
use virtbench_record::{FailureKind, Phase};

use super::connect::open_link;
use super::guest::{failure, wait_for_answer};
use super::platform::{LibvirtPlatform, Link};
use super::vm::{attached_name, has, state};
use crate::platform::{Action, Failure, Stopwatch};
use crate::removal::pauses;

/// How long a hypervisor may be away before what waits for it fails.
const OUTAGE_LIMIT: Duration = Duration::from_secs(60);
/// How long a hypervisor that is back may take to show what it goes on with.
const SETTLE: Duration = Duration::from_secs(3);

impl LibvirtPlatform {
    /// The connection; another one where nobody answers on it any more, unless that was tried a moment ago.
    pub(super) fn live_link(&self) -> Result<Arc<Link>, Failure> {
        let link = self.link();
        if !link.is_broken.load(Ordering::Relaxed) {
            return Ok(link);
        }
        let mut again = match self.again.try_lock() {
            Ok(again) => again,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let why = format!("{} is being connected to again", self.addresses.0);
                return Err(Failure::new(FailureKind::Unreachable, why));
            }
        };
        let now_used = self.link();
        if !Arc::ptr_eq(&link, &now_used) {
            return Ok(now_used);
        }
        again.attempt(Instant::now(), || self.connect_again(&link))
    }

    fn connect_again(&self, broken: &Arc<Link>) -> Result<Arc<Link>, Failure> {
        if broken.hypervisors().all(|hypervisor| hypervisor.versions().is_ok()) {
            broken.is_broken.store(false, Ordering::Relaxed);
            return Ok(Arc::clone(broken));
        }
        let (address, destination) = &self.addresses;
        let link = Arc::new(open_link(address, destination.as_ref())?.0);
        if let Some(keeper) = &self.keeper {
            keeper.use_domain(link.hypervisor.domain(&Keeper::name(&self.label)).map_err(failure)?);
        }
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&link);
        // Domains are looked for over the new connection.
        self.places().clear();
        tracing::info!(%address, "connected again after an outage");
        Ok(link)
    }

    /// Makes calls that may be made twice; once more after each outage.
    pub(super) fn through_outages<T>(
        &self,
        deadline: Instant,
        calls: impl Fn(&Link) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let until = deadline.min(Instant::now() + OUTAGE_LIMIT);
        let mut pauses = pauses();
        loop {
            let done = self.live_link().and_then(|link| link.noticing(|| calls(&link)));
            match done {
                Err(error) if error.kind == FailureKind::Unreachable && Instant::now() < until => {
                    thread::sleep(pauses.next().unwrap_or(SETTLE));
                }
                done => return done,
            }
        }
    }

    /// What became of an operation that failed. One that an outage cut off may have been done all the same: once the hypervisor is
    /// there again, its effect is looked for.
    pub(super) fn after_outage(
        &self,
        link: &Link,
        (vm, action): (&str, &Action),
        error: Failure,
        deadline: Instant,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        if error.kind != FailureKind::Unreachable {
            return Err(error);
        }
        link.is_broken.store(true, Ordering::Relaxed);
        let until = deadline.min(Instant::now() + OUTAGE_LIMIT);
        let seen = self.through_outages(until, |link| self.is_seen(link, (vm, action), until));
        watch.lap(Phase::Seen);
        let found = match seen {
            Ok(true) => return Ok(()),
            Ok(false) => "once it was back, this was not done".to_owned(),
            Err(other) => format!("what became of it is not known: {other}"),
        };
        Err(Failure { message: format!("{}; {found}", error.message), ..error })
    }

    /// Whether the effect of an operation is there, at once or a moment later.
    fn is_seen(&self, link: &Link, on: (&str, &Action), deadline: Instant) -> Result<bool, Failure> {
        let until = deadline.min(Instant::now() + SETTLE);
        let mut pauses = pauses();
        loop {
            if self.has_effect(link, on, deadline)? {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            thread::sleep(pauses.next().unwrap_or(SETTLE));
        }
    }

    fn has_effect(
        &self,
        link: &Link,
        (vm, action): (&str, &Action),
        deadline: Instant,
    ) -> Result<bool, Failure> {
        self.places().remove(vm);
        let Some(place) = self.place(link, vm)? else { return Ok(*action == Action::Remove) };
        let domain = &place.domain;
        let answers = || match self.model.boot {
            Some(_) => wait_for_answer(domain, deadline).map(|()| true),
            None => Ok(true),
        };
        let is = |wanted| Ok(state(domain)? == wanted);
        match action {
            Action::PowerOn | Action::Resume => Ok(is(VmState::On)? && answers()?),
            Action::PowerOff => is(VmState::Off),
            Action::Suspend => is(VmState::Suspended),
            Action::CreateSnapshot { name } => domain.has_snapshot(name).map_err(failure),
            Action::DeleteSnapshot { name } => Ok(!domain.has_snapshot(name).map_err(failure)?),
            Action::Reconfigure { note } => match domain.description() {
                Err(error) if error.kind() == ErrorKind::Other => Ok(false),
                said => Ok(said.map_err(failure)? == *note),
            },
            Action::AttachDisk { name } => has(domain, &attached_name(vm, name)),
            Action::DetachDisk { name } => Ok(!has(domain, &attached_name(vm, name))?),
            // Half of a copy looks like one, a domain does not say where it came from, and a question is simply asked again.
            _ => Ok(false),
        }
    }
}
