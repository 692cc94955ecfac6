//! A vCenter or a host, as a program uses it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use roxmltree::Node;
use virtbench_https::{Limit, Secret};

use crate::address::{Address, PlaceNames};
use crate::cluster::{self, Cluster};
use crate::devices::{self, Hardware};
use crate::effect::Effect;
use crate::error::{Fault, FaultKind, VsphereError};
use crate::inventory::{Inventory, MACHINE, Machine, MachineChange};
use crate::operation::{Disk, Operation, Slot};
use crate::outage::through_outages;
use crate::properties::{self, Of};
use crate::reply;
use crate::reply::Reference;
use crate::session::{About, Answered, Session};
use crate::task::Progress;
use crate::tracker::Tracker;

/// Whether an operation's effect is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until its task is over.
    Done,
    /// Until the inventory shows it.
    Seen,
}

/// Where the time of an operation went. All together are the time that it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationTimes {
    /// In this program.
    pub client: Duration,
    /// Until the server had accepted it.
    pub accepted: Duration,
    /// In the server's queue, by the server's clock.
    pub queued: Duration,
    /// While the server carried it out, by the server's clock.
    pub running: Duration,
    /// From its end until it was told.
    pub done: Duration,
    /// Until the inventory showed it.
    pub seen: Duration,
    /// How often the server was asked again, because the session had expired.
    pub retries: u32,
    /// Whether the server had accepted it.
    pub was_accepted: bool,
    /// Whether its task was over.
    pub was_over: bool,
}

/// A connection. Threads share it, and each call waits.
pub struct Vsphere {
    pub(crate) session: Arc<Session>,
    pub(crate) tracker: Tracker,
    /// Whether the server has no `MigrateVM_Task`.
    relocates: AtomicBool,
    /// Tasks that were not over when nobody waited for them any more.
    pub(crate) unfinished: Mutex<Vec<Reference>>,
}

impl fmt::Debug for Vsphere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vsphere({})", self.session.content().about.software)
    }
}

impl Vsphere {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached or trusted, or refuses the user.
    pub fn connect(address: &Address, password: Secret, until: Instant) -> Result<Self, VsphereError> {
        let session = Arc::new(Session::open(address, password, Limit::at(until))?);
        let tracker = Tracker::new(session.clone());
        Ok(Self { tracker, session, relocates: AtomicBool::new(false), unfinished: Mutex::default() })
    }

    /// What the server says of itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.session.content().about
    }

    /// All VMs, with what is known of each.
    ///
    /// # Errors
    /// The server does not say.
    pub fn inventory(&self, until: Instant) -> Result<Inventory, VsphereError> {
        self.timed_inventory(until).map(|(inventory, _)| inventory)
    }

    /// As [`inventory`](Self::inventory), with what this program and the server took.
    ///
    /// # Errors
    /// The server does not say.
    pub fn timed_inventory(&self, until: Instant) -> Result<(Inventory, OperationTimes), VsphereError> {
        self.timed_inventory_at(Limit::at(until))
    }

    pub(crate) fn timed_inventory_at(
        &self,
        limit: Limit,
    ) -> Result<(Inventory, OperationTimes), VsphereError> {
        let begun = Instant::now();
        let mut inventory = Inventory::default();
        let take = |machine: Reference, object: Node<'_, '_>| {
            MachineChange::read(machine, properties::values(object).map(|(path, value)| (path, Some(value))))
        };
        let view = self.view("VirtualMachine", limit)?;
        let read = properties::retrieve(&self.session, &[MACHINE], Of::View(&view), limit, take, |page| {
            page.into_iter().for_each(|change| inventory.apply(change));
        });
        self.forget(&view, limit);
        let read = read?;
        let client = begun.elapsed().saturating_sub(read.waited);
        let course = OperationTimes {
            client,
            accepted: read.waited,
            retries: read.retries,
            was_accepted: true,
            was_over: true,
            ..OperationTimes::default()
        };
        Ok((inventory, course))
    }

    /// One VM, nothing where it is not there.
    ///
    /// # Errors
    /// The server does not say.
    pub fn machine(&self, machine: &Reference, until: Instant) -> Result<Option<Machine>, VsphereError> {
        let take = |object: Node<'_, '_>| {
            MachineChange::read(
                machine.clone(),
                properties::values(object).map(|(path, value)| (path, Some(value))),
            )
        };
        let mut inventory = Inventory::default();
        match properties::of_one(&self.session, machine, MACHINE, Limit::at(until), take) {
            Ok(found) => found.value.into_iter().for_each(|change| inventory.apply(change)),
            Err(error) if error.fault() == Some(FaultKind::NotFound) => {}
            Err(error) => return Err(error),
        }
        Ok(inventory.get(machine).cloned())
    }

    /// Follows all VMs by updates.
    ///
    /// # Errors
    /// The server does not let it.
    pub fn follow(&self, until: Instant) -> Result<Followed<'_>, VsphereError> {
        let limit = Limit::at(until);
        let view = self.view("VirtualMachine", limit)?;
        let collector = properties::Collector::create(&self.session, &[MACHINE], &view, limit)?;
        Ok(Followed { session: &self.session, collector, inventory: Inventory::default() })
    }

    /// How many hosts can be used, and the cluster that is named, or the only one.
    ///
    /// # Errors
    /// There is none, or there are several, which are then listed; or the server does not say.
    pub fn cluster(&self, names: &PlaceNames, until: Instant) -> Result<(usize, Cluster), VsphereError> {
        let limit = Limit::at(until);
        let view = self.view("HostSystem", limit)?;
        let groups = cluster::hosts(&self.session, &view, limit);
        self.forget(&view, limit);
        let groups = groups?;
        let usable = groups.values().map(Vec::len).sum();
        Ok((usable, cluster::find(&self.session, groups, names, limit)?))
    }

    /// The VM at a path of the inventory, such as `/DC/vm/FOLDER/NAME`.
    ///
    /// # Errors
    /// The server does not say.
    pub fn machine_at(&self, path: &str, until: Instant) -> Result<Option<Reference>, VsphereError> {
        let found = cluster::by_path(&self.session, path, Limit::at(until))?;
        Ok(found.filter(|found| found.kind() == "VirtualMachine"))
    }

    /// What a VM has.
    ///
    /// # Errors
    /// It is gone, or the server does not say.
    pub fn hardware(&self, machine: &Reference, until: Instant) -> Result<Hardware, VsphereError> {
        let limit = Limit::at(until);
        let found = properties::of_one(&self.session, machine, devices::HARDWARE, limit, Hardware::read)?;
        let gone = || Fault::new("ManagedObjectNotFound", "the VM is gone");
        found.value.ok_or_else(|| VsphereError::Fault { what: "hardware", fault: gone() })
    }

    /// A free slot for a disk, and the disks that there are.
    ///
    /// # Errors
    /// The VM is gone, or has no controller for disks.
    pub fn disks(&self, machine: &Reference, until: Instant) -> Result<(Slot, Vec<Disk>), VsphereError> {
        let limit = Limit::at(until);
        let found = properties::of_one(&self.session, machine, devices::DEVICES, limit, devices::read)?.value;
        let fault = |name, why| VsphereError::Fault { what: "disks", fault: Fault::new(name, why) };
        let found = found.ok_or_else(|| fault("ManagedObjectNotFound", "the VM is gone"))?;
        let slot = found
            .slot
            .ok_or_else(|| fault("NotSupported", "the VM has no controller with a free place for a disk"))?;
        Ok((slot, found.disks))
    }

    /// The snapshot that a VM is at.
    ///
    /// # Errors
    /// The server does not say.
    pub fn current_snapshot(
        &self,
        machine: &Reference,
        until: Instant,
    ) -> Result<Option<Reference>, VsphereError> {
        let wanted = Effect::Snapshot(machine.clone()).wanted();
        let read = |object: Node<'_, '_>| {
            let tree = properties::values(object).next().map(|(_, tree)| tree);
            tree.and_then(|tree| reply::child(tree, "currentSnapshot")).map(reply::reference).transpose()
        };
        let found = properties::of_one(&self.session, machine, wanted, Limit::at(until), read)?;
        Ok(found.value.flatten())
    }

    /// Does an operation. What it made, and where the time went, also of one that failed.
    pub fn perform(
        &self,
        operation: &Operation<'_>,
        last: Until,
        until: Instant,
    ) -> (OperationTimes, Result<Option<Reference>, VsphereError>) {
        let (begun, limit) = (Instant::now(), Limit::at(until));
        let mut course = OperationTimes::default();
        let result = self.steps(operation, last, limit, &mut course);
        let elsewhere = course.accepted + course.queued + course.running + course.done + course.seen;
        course.client = begun.elapsed().saturating_sub(elsewhere);
        (course, result)
    }

    fn steps(
        &self,
        operation: &Operation<'_>,
        last: Until,
        limit: Limit,
        course: &mut OperationTimes,
    ) -> Result<Option<Reference>, VsphereError> {
        let task = match self.start(operation, limit, course) {
            Err(error @ VsphereError::Unreachable { was_sent: true, .. }) => {
                return self.found_out(operation, error, limit, course);
            }
            task => task?,
        };
        course.was_accepted = true;
        let begun = Instant::now();
        let ended = self.tracker.end(operation.method(), &task, limit).inspect_err(|error| {
            course.done = begun.elapsed();
            if error.is_connection() {
                self.unfinished().push(task.clone());
            }
        })?;
        course.retries += ended.retries;
        course.was_over = true;
        // Only lengths are taken from the server's clock.
        course.running = ended.task.run_time().min(ended.waited);
        course.queued = ended.task.queue_time().min(ended.waited - course.running);
        course.done = ended.waited - course.running - course.queued;
        let made = match ended.task.progress {
            Progress::Done(made) => made,
            Progress::Failed(fault) => return Err(VsphereError::Fault { what: operation.method(), fault }),
            Progress::Open => None,
        };
        if last == Until::Seen
            && let Some(machine) = operation.shown_by(made.as_ref())
            && let Some(effect) = operation.effect(made.as_ref())
        {
            self.see(machine, &effect, limit, course)?;
        }
        Ok(made)
    }

    /// Calls the method, which gives a task. What the API does not know is done by the call that it does know.
    fn start(
        &self,
        operation: &Operation<'_>,
        limit: Limit,
        course: &mut OperationTimes,
    ) -> Result<Reference, VsphereError> {
        if let Operation::Migrate { machine, host } = operation {
            let relocate = Operation::Relocate { machine, host };
            if self.relocates.load(Ordering::Relaxed) {
                return self.start(&relocate, limit, course);
            }
            return match self.accepted(operation, limit, course) {
                Err(error) if error.fault() == Some(FaultKind::Unsupported) => {
                    self.relocates.store(true, Ordering::Relaxed);
                    self.accepted(&relocate, limit, course)
                }
                answer => answer,
            };
        }
        self.accepted(operation, limit, course)
    }

    fn accepted(
        &self,
        operation: &Operation<'_>,
        limit: Limit,
        course: &mut OperationTimes,
    ) -> Result<Reference, VsphereError> {
        let request = operation.request();
        let begun = Instant::now();
        match self.session.call(&request, limit, reply::returned) {
            Ok(Answered { value, waited, retries }) => {
                course.accepted += waited;
                course.retries += retries;
                Ok(value)
            }
            Err(error) => {
                course.accepted += begun.elapsed();
                Err(error)
            }
        }
    }

    fn see(
        &self,
        machine: &Reference,
        effect: &Effect,
        limit: Limit,
        course: &mut OperationTimes,
    ) -> Result<(), VsphereError> {
        let begun = Instant::now();
        let look = |limit| {
            let asked = Instant::now();
            let shows = |object: Node<'_, '_>| Ok(effect.shows(Some(object)));
            let answer = through_outages(limit, || {
                properties::of_one(&self.session, machine, effect.wanted(), limit, shows)
            });
            match answer {
                Ok((answer, away, _)) => {
                    let shown = answer.value.unwrap_or_else(|| effect.shows(None));
                    Ok((shown.then_some(()), away + answer.waited))
                }
                Err(error) if error.fault() == Some(FaultKind::NotFound) => {
                    Ok((effect.shows(None).then_some(()), asked.elapsed()))
                }
                Err(error) => Err(error),
            }
        };
        let (shown, waited) =
            self.tracker.seen(machine, limit, look).inspect_err(|_| course.seen = begun.elapsed())?;
        course.seen = waited;
        shown.ok_or(VsphereError::NotSeen { what: effect.name(), limit: limit.length() })
    }

    fn view(&self, kind: &str, limit: Limit) -> Result<Reference, VsphereError> {
        cluster::view_of(&self.session, kind, limit)
    }

    fn forget(&self, view: &Reference, limit: Limit) {
        cluster::forget_view(&self.session, view, limit);
    }
}

/// Logs out.
impl Drop for Vsphere {
    fn drop(&mut self) {
        self.tracker.close();
    }
}

/// All VMs, kept up to date by the server's updates.
pub struct Followed<'a> {
    session: &'a Session,
    collector: properties::Collector,
    inventory: Inventory,
}

impl Followed<'_> {
    /// Waits for changes, at most for `wait` in whole seconds; whether there are more at once.
    ///
    /// # Errors
    /// The server does not say, or the session had expired: then follow anew.
    pub fn next(&mut self, wait: Duration, until: Instant) -> Result<bool, VsphereError> {
        let take = |machine: Reference, change, object: Node<'_, '_>| match change {
            properties::Change::Gone => Ok(MachineChange::gone(machine)),
            properties::Change::Is => MachineChange::read(machine, properties::changed(object)),
        };
        let (changes, more) = self.collector.wait(self.session, wait, Limit::at(until), take)?.value;
        changes.into_iter().for_each(|change| self.inventory.apply(change));
        Ok(more)
    }

    /// What is known by now.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}
