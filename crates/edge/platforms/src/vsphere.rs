//! vSphere as a platform: a vCenter or a host by its VIM API.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use virtbench_lab::{Label, Owner};
use virtbench_operations::VmState;
use virtbench_record::{CloneKind, FailureKind, OperationKind, Phase, Phases, PlatformFacts};
use virtbench_vsphere::{
    Address, Cluster, Course, Disk, FaultKind, Machine, Operation, Password, Power, Reference, Until,
    Vsphere, VsphereError,
};

use crate::failure::Failure;
use crate::platform::{Action, Performed, Platform};

/// The size of a disk that is attached, in KiB.
const DISK_KIB: u64 = 1024;
/// The snapshot that linked clones of a VM share.
const SHARED: &str = "virtbench-linked";

/// A VM of this run.
#[derive(Debug, Clone)]
struct Ours {
    machine: Reference,
    host: Reference,
    snapshots: HashMap<String, Reference>,
    disks: HashMap<String, Disk>,
}

/// VMs on one cluster of a vCenter, or on one host.
pub struct OnVsphere {
    server: Vsphere,
    address: String,
    label: String,
    cluster: Cluster,
    template: Option<Reference>,
    hosts: usize,
    others: usize,
    /// VMs are made on the hosts in turn.
    turn: AtomicUsize,
    ours: Mutex<HashMap<String, Ours>>,
}

impl fmt::Debug for OnVsphere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnVsphere({})", self.address)
    }
}

impl OnVsphere {
    /// Whether this is an address of vSphere's.
    ///
    /// # Errors
    /// Why not, with what to write.
    pub fn check(address: &str) -> Result<(), Failure> {
        Address::parse(address).map(drop).map_err(failure)
    }

    /// Connects to `vsphere+https://...`, with a label that nothing has had before, and removes what killed runs have left.
    ///
    /// # Errors
    /// The address makes no sense; the server cannot be reached or trusted, refuses the user, or has no host that can be
    /// used; the template is not there.
    pub fn connect(address: &str, deadline: Instant) -> Result<Self, Failure> {
        let address = Address::parse(address).map_err(failure)?;
        let password = Password::find(address.password_file.as_deref()).map_err(failure)?;
        let server = Vsphere::connect(&address, password, deadline).map_err(failure)?;
        let (hosts, cluster) = server.cluster(deadline).map_err(failure)?;
        let (shown, label) = (address.to_string(), Label::new().to_string());
        let (turn, ours) = (AtomicUsize::new(0), Mutex::default());
        let mut platform =
            Self { server, address: shown, label, cluster, template: None, hosts, others: 0, turn, ours };
        let swept = platform.sweep(deadline)?;
        if swept > 0 {
            tracing::info!(swept, "VMs of runs that were killed are removed");
        }
        let inventory = platform.server.inventory(deadline).map_err(failure)?;
        platform.others = inventory.iter().filter(|(_, machine)| !is_virtbenchs(machine)).count();
        let named = |name: &String| {
            inventory.named(name).cloned().ok_or_else(|| {
                let why = format!("no VM or template {name:?}, or several: see template=NAME in the address");
                Failure::new(FailureKind::Refused, why)
            })
        };
        platform.template = address.template.as_ref().map(named).transpose()?;
        Ok(platform)
    }

    fn ours(&self) -> MutexGuard<'_, HashMap<String, Ours>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, vm: &str) -> Result<Ours, Failure> {
        let none = || Failure::new(FailureKind::Vanished, format!("this run has no VM {vm:?}"));
        self.ours().get(vm).cloned().ok_or_else(none)
    }

    fn change(&self, vm: &str, change: impl FnOnce(&mut Ours)) {
        if let Some(ours) = self.ours().get_mut(vm) {
            change(ours);
        }
    }

    fn next_host(&self) -> &Reference {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.cluster.hosts[turn % self.cluster.hosts.len()]
    }

    /// Where a VM moves to: the host after its own.
    fn other_host(&self, host: &Reference) -> &Reference {
        let hosts = &self.cluster.hosts;
        let here = hosts.iter().position(|one| one == host).unwrap_or(0);
        &hosts[(here + 1) % hosts.len()]
    }

    /// Makes a VM and remembers it.
    fn make(&self, name: &str, from: Option<(&Reference, CloneKind)>, deadline: Instant) -> Done {
        let mut done = Done::default();
        let (label, cluster, host) = (self.label.as_str(), &self.cluster, self.next_host());
        if !name.starts_with(label) {
            let why = format!("{name:?} does not begin with the run's label");
            return done.refused(Failure::new(FailureKind::Refused, why));
        }
        let linked = match from {
            Some((_, CloneKind::Reflink | CloneKind::Array)) => {
                let why = "vSphere makes full and linked clones; it hands full ones to an array by itself where it can";
                return done.refused(Failure::new(FailureKind::Unsupported, why));
            }
            Some((machine, CloneKind::Linked)) => match self.shared_snapshot(machine, deadline, &mut done) {
                Ok(snapshot) => Some(snapshot),
                Err(why) => return done.refused(why),
            },
            _ => None,
        };
        let operation = match from {
            Some((machine, _)) => {
                Operation::Clone { machine, name, label, cluster, host, linked: linked.as_ref() }
            }
            None => Operation::Create { name, label, cluster, host },
        };
        let made = done.run(&self.server, &operation, deadline);
        if let Some(machine) = made {
            let (host, snapshots, disks) = (host.clone(), HashMap::new(), HashMap::new());
            self.ours().insert(name.to_owned(), Ours { machine, host, snapshots, disks });
        }
        done
    }

    /// The snapshot that a VM is at, or one made for it; it is part of what a linked clone takes.
    fn shared_snapshot(
        &self,
        machine: &Reference,
        deadline: Instant,
        done: &mut Done,
    ) -> Result<Reference, Failure> {
        let begun = Instant::now();
        let current = self.server.current_snapshot(machine, deadline).map_err(failure)?;
        done.phases.add(Phase::Accepted, nanoseconds(begun.elapsed()));
        if let Some(current) = current {
            return Ok(current);
        }
        let made = done.run(&self.server, &Operation::CreateSnapshot { machine, name: SHARED }, deadline);
        let none = || Failure::new(FailureKind::Garbled, "a snapshot was made and not named");
        std::mem::replace(&mut done.result, Ok(())).and_then(|()| made.ok_or_else(none))
    }

    fn attach(&self, vm: &str, name: &str, ours: &Ours, deadline: Instant) -> Done {
        let mut done = Done::default();
        let (machine, begun) = (&ours.machine, Instant::now());
        let (slot, before) = match self.server.disks(machine, deadline) {
            Ok(found) => found,
            Err(error) => return done.refused(failure(error)),
        };
        done.phases.add(Phase::Accepted, nanoseconds(begun.elapsed()));
        done.run(&self.server, &Operation::AttachDisk { machine, slot, kib: DISK_KIB }, deadline);
        if done.result.is_ok() {
            let begun = Instant::now();
            let after = self.server.disks(machine, deadline);
            done.phases.add(Phase::Seen, nanoseconds(begun.elapsed()));
            match after.map(|(_, after)| after.into_iter().find(|disk| !before.contains(disk))) {
                Ok(Some(disk)) => self.change(vm, |ours| _ = ours.disks.insert(name.to_owned(), disk)),
                Ok(None) => {
                    done.result = Err(Failure::new(FailureKind::NotSeen, "the VM does not show its new disk"))
                }
                Err(error) => done.result = Err(failure(error)),
            }
        }
        done
    }

    fn list_timed(&self, deadline: Instant) -> Done {
        let mut done = Done::default();
        match self.server.timed_inventory(deadline) {
            Ok((_, course)) => done.add(&course, Until::Done),
            Err(error) => return done.refused(failure(error)),
        }
        done
    }

    fn act(&self, vm: &str, action: &Action, ours: &Ours, deadline: Instant) -> Done {
        let machine = &ours.machine;
        let mut done = Done::default();
        let lacks = |what: &str, name: &str| {
            Failure::new(FailureKind::Vanished, format!("{vm} has no {what} {name:?} of this run"))
        };
        match action {
            Action::PowerOn | Action::Resume => {
                drop(done.run(&self.server, &Operation::PowerOn(machine), deadline))
            }
            Action::PowerOff => drop(done.run(&self.server, &Operation::PowerOff(machine), deadline)),
            Action::Suspend => drop(done.run(&self.server, &Operation::Suspend(machine), deadline)),
            Action::Clone { into, kind } => return self.make(into, Some((machine, *kind)), deadline),
            Action::Migrate => {
                let host = self.other_host(&ours.host);
                done.run(&self.server, &Operation::Migrate { machine, host }, deadline);
                if done.result.is_ok() {
                    self.change(vm, |ours| ours.host = host.clone());
                }
            }
            Action::Remove => {
                done.run(&self.server, &Operation::Destroy(machine), deadline);
                if done.result.is_ok() {
                    self.ours().remove(vm);
                }
            }
            Action::CreateSnapshot { name } => {
                if let Some(made) =
                    done.run(&self.server, &Operation::CreateSnapshot { machine, name }, deadline)
                {
                    self.change(vm, |ours| drop(ours.snapshots.insert(name.clone(), made)));
                }
            }
            Action::DeleteSnapshot { name } => {
                let Some(snapshot) = ours.snapshots.get(name) else {
                    return done.refused(lacks("snapshot", name));
                };
                done.run(&self.server, &Operation::RemoveSnapshot { machine, snapshot }, deadline);
                if done.result.is_ok() {
                    self.change(vm, |ours| drop(ours.snapshots.remove(name)));
                }
            }
            Action::Reconfigure { note } => {
                drop(done.run(&self.server, &Operation::Reconfigure { machine, note }, deadline))
            }
            Action::AttachDisk { name } => return self.attach(vm, name, ours, deadline),
            Action::DetachDisk { name } => {
                let Some(disk) = ours.disks.get(name) else { return done.refused(lacks("disk", name)) };
                done.run(&self.server, &Operation::DetachDisk { machine, disk: *disk }, deadline);
                if done.result.is_ok() {
                    self.change(vm, |ours| _ = ours.disks.remove(name));
                }
            }
            Action::Console | Action::List => {
                let why = format!("{} is not for a VM of vSphere", action.kind().name());
                return done.refused(Failure::new(FailureKind::Unsupported, why));
            }
        }
        done
    }

    /// Removes VMs whose label and name this is true of.
    fn remove_where(&self, whose: impl Fn(&str) -> bool, deadline: Instant) -> Result<usize, Failure> {
        let inventory = self.server.inventory(deadline).map_err(failure)?;
        let mut removed = 0;
        for (machine, shown) in inventory.iter() {
            let Some(label) = shown.label.as_deref().filter(|label| is_virtbenchs(shown) && whose(label))
            else {
                continue;
            };
            tracing::debug!(label, vm = &*shown.name, "removed");
            if shown.power != Power::Off {
                match self.server.perform(&Operation::PowerOff(machine), Until::Done, deadline).1 {
                    Err(error) if error.fault() != Some(FaultKind::InvalidPowerState) && !is_gone(&error) => {
                        return Err(failure(error));
                    }
                    _ => {}
                }
            }
            match self.server.perform(&Operation::Destroy(machine), Until::Done, deadline).1 {
                Err(error) if !is_gone(&error) => return Err(failure(error)),
                _ => removed += 1,
            }
        }
        Ok(removed)
    }
}

impl Platform for OnVsphere {
    fn facts(&self) -> PlatformFacts {
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let about = self.server.about();
        PlatformFacts {
            address: self.address.clone(),
            software: format!("{}, API {}", about.software, about.api),
            hosts: count(self.cluster.hosts.len()),
            others: count(self.others),
            notes: vec![format!(
                "VMs are made on {} of {} hosts, on the datastore {}",
                self.cluster.hosts.len(),
                self.hosts,
                self.cluster.datastore
            )],
        }
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        match operation {
            OperationKind::Console => {
                Some("consoles of vSphere are opened by a browser, not by its API".to_owned())
            }
            OperationKind::Migrate if self.cluster.hosts.len() < 2 => {
                Some("only one host of the cluster is connected and out of maintenance".to_owned())
            }
            _ => None,
        }
    }

    fn migrates_snapshots(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        self.make(vm, self.template.as_ref().map(|template| (template, CloneKind::Full)), deadline).result
    }

    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed {
        let done = match (action, self.known(vm)) {
            (Action::List, _) => self.list_timed(deadline),
            (_, Ok(ours)) => self.act(vm, action, &ours, deadline),
            (_, Err(why)) => Done::default().refused(why),
        };
        Performed { phases: done.phases, retries: done.retries, job: None, result: done.result }
    }

    fn state(&self, vm: &str, deadline: Instant) -> Result<Option<VmState>, Failure> {
        let Ok(ours) = self.known(vm) else { return Ok(None) };
        let machine = self.server.machine(&ours.machine, deadline).map_err(failure)?;
        Ok(machine.map(|machine| state(machine.power)))
    }

    fn list(&self, deadline: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        let inventory = self.server.inventory(deadline).map_err(failure)?;
        let ours = inventory
            .iter()
            .filter(|(_, machine)| machine.label.as_deref() == Some(&self.label) && is_virtbenchs(machine));
        Ok(ours.map(|(_, machine)| (machine.name.to_string(), state(machine.power))).collect())
    }

    fn sweep(&self, deadline: Instant) -> Result<usize, Failure> {
        let gone = |label: &str| Label::parse(label).is_some_and(|label| label.owner() == Owner::Gone);
        self.remove_where(gone, deadline)
    }

    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure> {
        let removed = self.remove_where(|label| label == self.label, deadline)?;
        self.ours().clear();
        Ok(removed)
    }
}

/// Whether its name begins with its label: a copy that a user made of such a VM has the label only.
fn is_virtbenchs(machine: &Machine) -> bool {
    let rest = machine.label.as_deref().and_then(|label| machine.name.strip_prefix(label));
    rest.is_some_and(|rest| rest.starts_with('-'))
}

fn is_gone(error: &VsphereError) -> bool {
    error.fault() == Some(FaultKind::NotFound)
}

fn state(power: Power) -> VmState {
    match power {
        Power::Off => VmState::Off,
        Power::On => VmState::On,
        Power::Suspended => VmState::Suspended,
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// What one or several calls came to.
#[derive(Debug)]
struct Done {
    phases: Phases,
    retries: u32,
    result: Result<(), Failure>,
}

impl Default for Done {
    fn default() -> Self {
        Self { phases: Phases::default(), retries: 0, result: Ok(()) }
    }
}

impl Done {
    fn refused(self, why: Failure) -> Self {
        Self { result: Err(why), ..self }
    }

    fn run(&mut self, server: &Vsphere, operation: &Operation<'_>, deadline: Instant) -> Option<Reference> {
        let (course, made) = server.perform(operation, Until::Seen, deadline);
        self.add(&course, Until::Seen);
        match made {
            Ok(made) => made,
            Err(error) => {
                self.result = Err(failure(error));
                None
            }
        }
    }

    /// Phases that were not reached stay unknown.
    fn add(&mut self, course: &Course, last: Until) {
        self.retries += course.retries;
        let reached = [
            (Phase::Client, course.client, true),
            (Phase::Accepted, course.accepted, true),
            (Phase::Queued, course.queued, course.was_over),
            (Phase::Running, course.running, course.was_over),
            (Phase::Done, course.done, course.was_accepted),
            (Phase::Seen, course.seen, course.was_over && last == Until::Seen),
        ];
        for (phase, length, _) in reached.into_iter().filter(|(.., reached)| *reached) {
            self.phases.add(phase, nanoseconds(length));
        }
    }
}

fn failure(error: VsphereError) -> Failure {
    let kind = match &error {
        VsphereError::Settings(_) => FailureKind::Refused,
        VsphereError::Unreachable { .. } | VsphereError::Tls { .. } | VsphereError::Http { .. } => {
            FailureKind::Unreachable
        }
        VsphereError::Garbled { .. } => FailureKind::Garbled,
        VsphereError::Late { .. } => FailureKind::TimedOut,
        VsphereError::NotSeen { .. } => FailureKind::NotSeen,
        VsphereError::Fault { fault, .. } => match fault.kind {
            FaultKind::NotAuthenticated | FaultKind::InvalidLogin => FailureKind::NotAuthenticated,
            FaultKind::NoPermission => FailureKind::Denied,
            FaultKind::InvalidPowerState | FaultKind::InvalidState => FailureKind::WrongState,
            FaultKind::NotFound => FailureKind::Vanished,
            FaultKind::NoRoom => FailureKind::NoRoom,
            FaultKind::Busy => FailureKind::Busy,
            FaultKind::TimedOut => FailureKind::TimedOut,
            FaultKind::Unsupported => FailureKind::Unsupported,
            FaultKind::DuplicateName
            | FaultKind::InvalidArgument
            | FaultKind::Cancelled
            | FaultKind::Other => FailureKind::Refused,
        },
    };
    Failure::new(kind, error.to_string())
}
