//! The seam, for libvirt.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use virtbench_lab::{Keeper, Label, LibvirtAddress, Made, SweepOf, remove_made};
use virtbench_libvirt::{Domain, DomainChange, DomainEvents, ErrorKind, Hypervisor, Pool};
use virtbench_mark::RunId;
use virtbench_operations::VmState;
use virtbench_record::{FailureKind, OperationKind, Phase, PlatformFacts};

use super::guest::{failure, wait_for_answer};
use super::vm::{Bench, completed, state, states, under_way};
use super::xml::{Disks, Model};
use crate::platform::{Action, Failure, JobTold, Performed, Platform, Stopwatch, elsewhere_only};
use crate::removal::BackOff;

/// How long the end of a run may take to remove what it made.
const LAST_LIMIT: Duration = Duration::from_secs(120);

/// Where VMs are migrated to and back.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) hypervisor: Hypervisor,
    pub(super) events: Option<DomainEvents>,
    /// How that hypervisor's emulator is reached, where it does not say so itself, and the way back.
    pub(super) over: Option<&'static str>,
    pub(super) back: Option<&'static str>,
}

/// What a platform is reached by; after an outage another one.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) hypervisor: Hypervisor,
    /// What it says of its domains, where it does.
    pub(super) events: Option<DomainEvents>,
    pub(super) pool: Pool,
    pub(super) other: Option<Other>,
    /// Whether a call found nobody.
    pub(super) is_broken: AtomicBool,
}

/// A VM of the run, and whether it has been moved to the other hypervisor.
#[derive(Debug, Clone)]
pub(super) struct RunDomain {
    pub(super) domain: Domain,
    pub(super) is_away: bool,
}

/// A hypervisor, and what a run has made on it. Dropping it removes that.
#[derive(Debug)]
pub struct LibvirtPlatform {
    /// Where it is, and where VMs are migrated to.
    pub(super) addresses: (LibvirtAddress, Option<LibvirtAddress>),
    pub(super) link: Mutex<Arc<Link>>,
    pub(super) label: Label,
    pub(super) model: Model,
    pub(super) facts: PlatformFacts,
    pub(super) disks: Disks,
    pub(super) domains: Mutex<BTreeMap<String, RunDomain>>,
    /// Keeps account of what is made; nothing where that goes with the connection.
    pub(super) keeper: Option<Keeper>,
    /// When and how soon it is connected again after an outage.
    pub(super) again: Mutex<BackOff>,
}

impl LibvirtPlatform {
    pub(super) fn places(&self) -> MutexGuard<'_, BTreeMap<String, RunDomain>> {
        self.domains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where a VM is, as libvirt says if that was not known.
    pub(super) fn place(&self, link: &Link, vm: &str) -> Result<Option<RunDomain>, Failure> {
        if let Some(place) = self.places().get(vm) {
            return Ok(Some(place.clone()));
        }
        let foreign = || {
            let why = format!("{vm} was not made by this run: it is left alone");
            Failure::new(FailureKind::Denied, why)
        };
        if !vm.starts_with(&format!("{}-", self.label)) {
            return Err(foreign());
        }
        let there = |hypervisor: &Hypervisor, is_away| match hypervisor.domain(vm) {
            Ok(domain) => Ok(Some(RunDomain { domain, is_away })),
            Err(error) if error.kind() == ErrorKind::NoDomain => Ok(None),
            Err(error) => Err(failure(error)),
        };
        let place = match there(&link.hypervisor, false)? {
            None => link.other.as_ref().map_or(Ok(None), |other| there(&other.hypervisor, true))?,
            found => found,
        };
        if let Some(place) = &place {
            let made = Made::read(&place.domain.xml().map_err(failure)?);
            if made.is_none_or(|made| made.mark.run != self.model.run) {
                return Err(foreign());
            }
            self.places().insert(vm.to_owned(), place.clone());
        }
        Ok(place)
    }

    pub(super) fn bench<'a>(&'a self, link: &'a Link, is_away: bool, deadline: Instant) -> Bench<'a> {
        let there = link.other.as_ref().filter(|_| is_away);
        Bench {
            hypervisor: there.map_or(&link.hypervisor, |other| &other.hypervisor),
            events: link.events_of(is_away),
            pool: &link.pool,
            model: &self.model,
            disks: &self.disks,
            deadline,
        }
    }

    fn on_vm(
        &self,
        link: &Link,
        (vm, action): (&str, &Action),
        deadline: Instant,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        let is_known = self.places().contains_key(vm);
        watch.lap(Phase::Client);
        let place = self.place(link, vm);
        if !is_known {
            watch.lap(Phase::Accepted);
        }
        let place = place?;
        if *action == Action::Migrate {
            let place =
                place.ok_or_else(|| Failure::new(FailureKind::Vanished, format!("{vm} is not there")))?;
            return self.migrate(link, vm, place, deadline, watch);
        }
        let is_away = place.as_ref().is_some_and(|place| place.is_away);
        let domain = place.as_ref().map(|place| &place.domain);
        let done = self.bench(link, is_away, deadline).perform(domain, vm, action, watch);
        let is_gone = matches!(&done, Err(error) if error.kind == FailureKind::Vanished);
        if is_gone || (done.is_ok() && *action == Action::Remove) {
            self.places().remove(vm);
        }
        done
    }

    fn migrate(
        &self,
        link: &Link,
        vm: &str,
        from: RunDomain,
        deadline: Instant,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        let Some(other) = &link.other else {
            return Err(Failure::new(
                FailureKind::Unsupported,
                "there is nowhere to migrate to: give --destination",
            ));
        };
        let (to, over) =
            if from.is_away { (&link.hypervisor, other.back) } else { (&other.hypervisor, other.over) };
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        watch.lap(Phase::Client);
        let watched = link.events_of(!from.is_away).map(|events| events.watch(vm));
        let moved = from.domain.migrate(to, over, left);
        if let Some(watched) = watched {
            // It is accepted when the destination has a process that waits for it, and done when it runs on in that.
            let phases = [(Phase::Accepted, DomainChange::Started), (Phase::Running, DomainChange::Resumed)];
            for (phase, change) in phases {
                if let Some(at) = watched.first(change) {
                    watch.lap_until(phase, at);
                }
            }
            let is_told = watched.first(DomainChange::Resumed).is_some();
            watch.lap(if is_told { Phase::Done } else { Phase::Running });
        } else {
            watch.lap(Phase::Running);
        }
        // Wherever it is now, it is looked for there.
        self.places().remove(vm);
        let domain = moved.map_err(|error| {
            let late = failure(error);
            let how_far = if late.kind == FailureKind::TimedOut { under_way(&from.domain) } else { None };
            let message =
                how_far.map_or_else(|| late.message.clone(), |far| format!("{}; {far}", late.message));
            Failure { message, ..late }
        })?;
        self.places().insert(vm.to_owned(), RunDomain { domain: domain.clone(), is_away: !from.is_away });
        let seen = wait_for_answer(&domain, deadline);
        watch.lap(Phase::Seen);
        seen
    }

    /// What libvirt tells of an operation that was done and that it does as a job: it moves memory.
    fn job(&self, vm: &str, action: &Action) -> Option<JobTold> {
        let place = self.place(&self.link(), vm).ok()??;
        match action {
            Action::Migrate => Some(completed(&place.domain)),
            Action::CreateSnapshot { .. } if state(&place.domain) == Ok(VmState::On) => {
                Some(completed(&place.domain))
            }
            _ => None,
        }
    }

    fn remove(&self, which: SweepOf<'_>, deadline: Instant) -> Result<usize, Failure> {
        self.through_outages(deadline, |link| {
            let mut removed = 0;
            for hypervisor in link.hypervisors() {
                removed += remove_made(hypervisor, which, deadline).map_err(failure)?;
            }
            Ok(removed)
        })
    }

    fn listed(&self, link: &Link) -> Result<Vec<(String, VmState)>, Failure> {
        let mut all = Vec::new();
        for hypervisor in link.hypervisors() {
            all.extend(states(hypervisor, &self.label.to_string(), self.run())?);
        }
        Ok(all)
    }

    fn run(&self) -> &RunId {
        &self.model.run
    }
}

impl Link {
    fn events_of(&self, is_away: bool) -> Option<&DomainEvents> {
        match &self.other {
            Some(other) if is_away => other.events.as_ref(),
            _ => self.events.as_ref(),
        }
    }

    /// Makes calls, and notes whether they found nobody.
    pub(super) fn noticing<T>(&self, calls: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        calls().inspect_err(|error| {
            if error.kind == FailureKind::Unreachable {
                self.is_broken.store(true, Ordering::Relaxed);
            }
        })
    }

    pub(super) fn hypervisors(&self) -> impl Iterator<Item = &Hypervisor> {
        std::iter::once(&self.hypervisor).chain(self.other.as_ref().map(|other| &other.hypervisor))
    }
}

impl Platform for LibvirtPlatform {
    fn facts(&self) -> PlatformFacts {
        self.facts.clone()
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        let lives = self.model.boot.is_some();
        match operation {
            OperationKind::Migrate if self.addresses.1.is_none() => {
                Some("there is nowhere to migrate to: name another hypervisor with --destination".into())
            }
            OperationKind::CreateSnapshot | OperationKind::DeleteSnapshot if self.disks.are_raw() => Some(
                "its disks are raw so that --clone can have reflink or array, and have no room for snapshots in themselves"
                    .into(),
            ),
            OperationKind::Console | OperationKind::AttachDisk | OperationKind::DetachDisk if !lives => {
                Some("libvirt's test driver does not have it".into())
            }
            _ => elsewhere_only(operation),
        }
    }

    fn migrates_snapshots(&self) -> bool {
        false
    }

    fn clones_overlays(&self) -> bool {
        !self.disks.are_raw()
    }

    fn label(&self) -> String {
        self.label.to_string()
    }

    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        let link = self.live_link()?;
        let domain = link.noticing(|| self.bench(&link, false, deadline).create(vm))?;
        self.places().insert(vm.to_owned(), RunDomain { domain, is_away: false });
        Ok(())
    }

    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed {
        let mut watch = Stopwatch::start();
        let mut retries = 0;
        let result = self.live_link().and_then(|link| {
            let done = if *action == Action::List {
                let listed = self.listed(&link).map(drop);
                watch.lap(Phase::Running);
                listed
            } else {
                self.on_vm(&link, (vm, action), deadline, &mut watch)
            };
            done.or_else(|error| {
                retries = u32::from(error.kind == FailureKind::Unreachable);
                self.after_outage(&link, (vm, action), error, deadline, &mut watch)
            })
        });
        // Asked once the time is taken.
        let job = if result.is_ok() { self.job(vm, action) } else { None };
        Performed { phases: watch.phases(), retries, job, result }
    }

    fn state(&self, vm: &str, _deadline: Instant) -> Result<Option<VmState>, Failure> {
        let link = self.live_link()?;
        link.noticing(|| {
            let Some(place) = self.place(&link, vm)? else { return Ok(None) };
            match state(&place.domain) {
                Ok(state) => Ok(Some(state)),
                Err(error) if error.kind == FailureKind::Vanished => {
                    self.places().remove(vm);
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        })
    }

    fn list(&self, _deadline: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        let link = self.live_link()?;
        link.noticing(|| self.listed(&link))
    }

    fn sweep(&self, deadline: Instant) -> Result<usize, Failure> {
        self.remove(SweepOf::LeftOver, deadline)
    }

    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure> {
        self.places().clear();
        // The VMs of the next step are made of what all share.
        self.remove(SweepOf::VmsOf(self.run()), deadline)
    }
}

impl Drop for LibvirtPlatform {
    fn drop(&mut self) {
        self.places().clear();
        if let Err(error) = self.remove(SweepOf::Run(self.run()), Instant::now() + LAST_LIMIT) {
            tracing::warn!(%error, label = %self.label, "what is left is removed by the next run there");
        }
    }
}
