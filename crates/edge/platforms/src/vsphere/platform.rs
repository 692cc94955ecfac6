//! The seam, for vSphere.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use virtbench_mark::{Owner, RunId};
use virtbench_operations::VmState;
use virtbench_record::{CloneKind, FailureKind, OperationKind, Phase, PlatformFacts};
use virtbench_vsphere::{Cluster, Disk, Machine, Operation, Power, Reference, Shape, Until, Vsphere};

use super::done::{CallResult, failure, nanoseconds};
use super::owned::{Owned, VM, give_shape, remove};
use crate::keeper::Keeper;
use crate::platform::{Action, Failure, Performed, Platform, RunVms, check_name, elsewhere_only};

/// The size of a disk that is attached, in KiB.
const DISK_KIB: u64 = 1024;
/// The snapshot that linked clones of a VM share.
const SHARED: &str = "virtbench-linked";

/// A VM of this run.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    machine: Reference,
    host: Reference,
    snapshots: HashMap<String, Reference>,
    disks: HashMap<String, Disk>,
}

/// VMs on one cluster of a vCenter, or on one host.
pub struct OnVsphere {
    pub(super) server: Arc<Vsphere>,
    pub(super) address: String,
    pub(super) label: String,
    pub(super) run: RunId,
    pub(super) cluster: Cluster,
    pub(super) template: Option<Reference>,
    /// What VMs are to have.
    pub(super) wanted: Shape,
    pub(super) facts: PlatformFacts,
    /// VMs are made on the hosts in turn.
    pub(super) turn: AtomicUsize,
    pub(super) ours: RunVms<Ours>,
    /// It says that the run lives.
    pub(super) _keeper: Keeper,
}

impl fmt::Debug for OnVsphere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnVsphere({})", self.address)
    }
}

impl OnVsphere {
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

    /// Makes a VM and remembers it. A copy of one of the run's has all that this has.
    fn make(
        &self,
        name: &str,
        from: Option<(&Reference, CloneKind)>,
        shape: Shape,
        deadline: Instant,
    ) -> CallResult {
        let mut done = CallResult::default();
        let (cluster, host) = (&self.cluster, self.next_host());
        if let Err(why) = check_name(&self.label, name) {
            return done.refused(why);
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
        let owned = Owned::new(&self.run, VM);
        let text = owned.text();
        let own = owned.own(&text);
        let operation = match from {
            Some((machine, _)) => {
                Operation::Clone { machine, name, own, shape, cluster, host, linked: linked.as_ref() }
            }
            None => Operation::Create { name, own, shape, cluster, host },
        };
        let made = done.run(&self.server, &operation, deadline);
        if let Some(machine) = made {
            let (host, snapshots, disks) = (host.clone(), HashMap::new(), HashMap::new());
            self.ours.add(name, Ours { machine, host, snapshots, disks });
        }
        done
    }

    /// The snapshot that a VM is at, or one made for it; it is part of what a linked clone takes.
    fn shared_snapshot(
        &self,
        machine: &Reference,
        deadline: Instant,
        done: &mut CallResult,
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

    fn attach(&self, vm: &str, name: &str, ours: &Ours, deadline: Instant) -> CallResult {
        let mut done = CallResult::default();
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
                Ok(Some(disk)) => self.ours.change(vm, |ours| _ = ours.disks.insert(name.to_owned(), disk)),
                Ok(None) => {
                    done.result = Err(Failure::new(FailureKind::NotSeen, "the VM does not show its new disk"))
                }
                Err(error) => done.result = Err(failure(error)),
            }
        }
        done
    }

    fn list_timed(&self, deadline: Instant) -> CallResult {
        let mut done = CallResult::default();
        match self.server.timed_inventory(deadline) {
            Ok((_, course)) => done.add(&course, Until::Done),
            Err(error) => return done.refused(failure(error)),
        }
        done
    }

    fn act(&self, vm: &str, action: &Action, ours: &Ours, deadline: Instant) -> CallResult {
        let machine = &ours.machine;
        let mut done = CallResult::default();
        let lacks = |what: &str, name: &str| {
            Failure::new(FailureKind::Vanished, format!("{vm} has no {what} {name:?} of this run"))
        };
        match action {
            Action::PowerOn | Action::Resume => {
                drop(done.run(&self.server, &Operation::PowerOn(machine), deadline))
            }
            Action::PowerOff => drop(done.run(&self.server, &Operation::PowerOff(machine), deadline)),
            Action::Suspend => drop(done.run(&self.server, &Operation::Suspend(machine), deadline)),
            Action::Clone { into, kind } => {
                return self.make(into, Some((machine, *kind)), Shape::default(), deadline);
            }
            Action::Migrate => {
                let host = self.other_host(&ours.host);
                done.run(&self.server, &Operation::Migrate { machine, host }, deadline);
                if done.result.is_ok() {
                    self.ours.change(vm, |ours| ours.host = host.clone());
                }
            }
            Action::Remove => {
                done.run(&self.server, &Operation::Destroy(machine), deadline);
                if done.result.is_ok() {
                    self.ours.remove(vm);
                }
            }
            Action::CreateSnapshot { name } => {
                if let Some(made) =
                    done.run(&self.server, &Operation::CreateSnapshot { machine, name }, deadline)
                {
                    self.ours.change(vm, |ours| drop(ours.snapshots.insert(name.clone(), made)));
                }
            }
            Action::DeleteSnapshot { name } => {
                let Some(snapshot) = ours.snapshots.get(name) else {
                    return done.refused(lacks("snapshot", name));
                };
                done.run(&self.server, &Operation::RemoveSnapshot { machine, snapshot }, deadline);
                if done.result.is_ok() {
                    self.ours.change(vm, |ours| drop(ours.snapshots.remove(name)));
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
                    self.ours.change(vm, |ours| _ = ours.disks.remove(name));
                }
            }
            Action::Console
            | Action::List
            | Action::Shutdown
            | Action::Reset
            | Action::RevertSnapshot { .. }
            | Action::MoveDisk
            | Action::ResizeDisk
            | Action::ColdMigrate
            | Action::Resize
            | Action::Rebuild
            | Action::Shelve
            | Action::Unshelve
            | Action::AttachPort { .. }
            | Action::DetachPort { .. } => return done.refused(not_done(action)),
        }
        done
    }
}

impl Platform for OnVsphere {
    fn facts(&self) -> PlatformFacts {
        self.facts.clone()
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        lacks(self.server.about().is_host(), self.cluster.hosts.len(), operation)
    }

    fn migrates_snapshots(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        let template = self.template.as_ref().map(|template| (template, CloneKind::Full));
        let shape = match template {
            Some(_) => Shape { disk_kib: None, ..self.wanted },
            None => self.wanted,
        };
        self.make(vm, template, shape, deadline).result?;
        let machine = self.ours.known(vm)?.machine;
        give_shape(&self.server, &machine, self.wanted, deadline)
    }

    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed {
        let done = match (action, self.ours.known(vm)) {
            (Action::List, _) => self.list_timed(deadline),
            (_, Ok(ours)) => self.act(vm, action, &ours, deadline),
            (_, Err(why)) => CallResult::default().refused(why),
        };
        Performed { phases: done.phases, retries: done.retries, job: None, result: done.result }
    }

    fn state(&self, vm: &str, deadline: Instant) -> Result<Option<VmState>, Failure> {
        let Ok(ours) = self.ours.known(vm) else { return Ok(None) };
        let machine = self.server.machine(&ours.machine, deadline).map_err(failure)?;
        Ok(machine.map(|machine| state(machine.power)))
    }

    fn list(&self, deadline: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        let inventory = self.server.inventory(deadline).map_err(failure)?;
        let is_ours = |machine: &Machine| {
            Owned::read(machine).is_some_and(|owned| owned.mark.run == self.run && owned.is_for(VM))
        };
        let ours = inventory.iter().filter(|(_, machine)| is_ours(machine));
        Ok(ours.map(|(_, machine)| (machine.name.to_string(), state(machine.power))).collect())
    }

    fn sweep(&self, deadline: Instant) -> Result<usize, Failure> {
        let gone = |owned: &Owned| owned.mark.owner() == Owner::Gone;
        remove(&self.server, &self.address, gone, deadline)
    }

    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure> {
        // What was late may come yet.
        let open = self.server.settle(deadline);
        let of_run = |owned: &Owned| owned.mark.run == self.run && owned.is_for(VM);
        let removed = remove(&self.server, &self.address, of_run, deadline)?;
        self.ours.clear();
        if open > 0 {
            let why = format!(
                "{open} tasks of this run are still open: what they make is removed by `virtbench sweep --platform '{}'`",
                self.address
            );
            return Err(Failure::new(FailureKind::TimedOut, why));
        }
        Ok(removed)
    }
}

fn state(power: Power) -> VmState {
    match power {
        Power::Off => VmState::Off,
        Power::On => VmState::On,
        Power::Suspended => VmState::Suspended,
    }
}

/// What a vCenter, or a host without one, with so many hosts cannot do.
fn lacks(is_host: bool, hosts: usize, operation: OperationKind) -> Option<String> {
    match operation {
        OperationKind::Console => {
            Some("consoles of vSphere are opened by a browser, not by its API".to_owned())
        }
        OperationKind::Clone if is_host => {
            Some("a host without a vCenter has no CloneVM: name its vCenter".to_owned())
        }
        OperationKind::Migrate if hosts < 2 => {
            Some("only one host of the cluster is connected and out of maintenance".to_owned())
        }
        _ => elsewhere_only(operation),
    }
}

fn not_done(action: &Action) -> Failure {
    let why = format!("{} is not done with a VM of vSphere", action.kind().name());
    Failure::new(FailureKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_vcenter_clones_and_moves_nothing() {
        assert!(lacks(true, 1, OperationKind::Clone).is_some_and(|why| why.contains("CloneVM")));
        assert!(
            lacks(true, 1, OperationKind::Migrate).is_some()
                && lacks(true, 1, OperationKind::PowerOn).is_none()
        );
        assert!(
            [OperationKind::Clone, OperationKind::Migrate]
                .iter()
                .all(|kind| lacks(false, 2, *kind).is_none())
        );
    }
}
