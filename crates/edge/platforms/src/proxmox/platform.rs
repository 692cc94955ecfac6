//! The seam, for Proxmox VE.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use virtbench_mark::{Owner, RunId};
use virtbench_operations::VmState;
use virtbench_proxmox::{
    Address, Disk, Limit, NewMachine, Operation, OperationTimes, Place, Power, Proxmox, ProxmoxError, Storage,
};
use virtbench_record::{CloneKind, FailureKind, OperationKind, Phases, PlatformFacts};

use super::failure::{add, failure};
use super::owned::{Numbers, Owned, TAG, VM, remove};
use crate::keeper::Keeper;
use crate::platform::{Action, Failure, Performed, Platform, RunVms, check_name, on_openstack_only};

/// The size of a disk that is attached, in MiB.
const DISK_MIB: u32 = 128;

/// By how much a disk grows, in MiB.
const GROWTH_MIB: u64 = 16;

/// What the VMs of a run are made of.
#[derive(Debug, Clone, Copy)]
pub struct ProxmoxOptions {
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each disk; Proxmox VE makes them of whole GiB.
    pub disk_bytes: u64,
}

/// What VMs are cloned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) place: Place,
    pub(super) name: String,
    /// Whether it is one, so that linked clones can be made of it.
    pub(super) is_template: bool,
}

/// A VM of this run.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    place: Place,
    /// The first line of its description.
    text: String,
    disks: HashMap<String, u32>,
}

/// VMs on a cluster of Proxmox VE.
pub struct OnProxmox {
    pub(super) server: Arc<Proxmox>,
    pub(super) address: Address,
    pub(super) label: String,
    pub(super) run: RunId,
    /// Where VMs are made, in turn.
    pub(super) nodes: Vec<String>,
    pub(super) storage: Storage,
    /// Where disks move to, and back from.
    pub(super) other_storage: Option<Storage>,
    pub(super) template: Option<Template>,
    pub(super) options: ProxmoxOptions,
    pub(super) facts: PlatformFacts,
    pub(super) numbers: Numbers,
    pub(super) turn: AtomicUsize,
    pub(super) ours: RunVms<Ours>,
    /// It says that the run lives.
    pub(super) _keeper: Keeper,
}

impl fmt::Debug for OnProxmox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnProxmox({})", self.address)
    }
}

/// Calls for one operation of the seam.
struct Calls<'a> {
    server: &'a Proxmox,
    limit: Limit,
    phases: Phases,
    retries: u32,
}

impl Calls<'_> {
    fn add(&mut self, times: &OperationTimes) {
        add(&mut self.phases, times);
        self.retries += times.retries;
    }

    fn perform(&mut self, place: &Place, operation: &Operation<'_>) -> Result<(), ProxmoxError> {
        let (times, result) = self.server.perform(place, operation, self.limit);
        self.add(&times);
        result
    }

    fn has(&mut self, place: &Place, operation: &Operation<'_>) -> Result<(), Failure> {
        self.perform(place, operation).map_err(failure)
    }
}

impl OnProxmox {
    fn calls(&self, deadline: Instant) -> Calls<'_> {
        Calls { server: &self.server, limit: Limit::at(deadline), phases: Phases::default(), retries: 0 }
    }

    /// Where a VM of the run is.
    pub(super) fn place(&self, vm: &str) -> Result<Place, Failure> {
        self.ours.known(vm).map(|ours| ours.place)
    }

    /// The node after this one.
    fn other_node(&self, node: &str) -> &str {
        let here = self.nodes.iter().position(|one| one == node).unwrap_or(0);
        &self.nodes[(here + 1) % self.nodes.len()]
    }

    /// Makes a VM with the first number that is free, remembers it, and has it say whose it is.
    fn make(
        &self,
        name: &str,
        node: &str,
        mut make: impl FnMut(u32, &str) -> Result<(), ProxmoxError>,
    ) -> Result<(), Failure> {
        check_name(&self.label, name)?;
        let text = |vmid| Owned::new(&self.run, VM, vmid, name).text();
        let (vmid, made) = self.numbers.take(|vmid| make(vmid, &text(vmid)));
        made.map_err(failure)?;
        let place = Place { node: node.to_owned(), vmid };
        self.ours.add(name, Ours { place, text: text(vmid), disks: HashMap::new() });
        Ok(())
    }

    /// Clones a VM of the run, or the template that its VMs are made of.
    fn clone_of(
        &self,
        from: &Place,
        into: &str,
        kind: CloneKind,
        has_tag: bool,
        calls: &mut Calls<'_>,
    ) -> Result<(), Failure> {
        let (full, from) = match kind {
            CloneKind::Full => (true, from),
            CloneKind::Linked => match &self.template {
                Some(template) if template.is_template => (false, &template.place),
                _ => {
                    let why = "Proxmox VE makes linked clones of templates only: name one (template= in the address), or take \
                               --clone full";
                    return Err(Failure::new(FailureKind::Unsupported, why));
                }
            },
            CloneKind::Reflink | CloneKind::Array => {
                let why = "Proxmox VE makes full and linked clones: take --clone full,linked";
                return Err(Failure::new(FailureKind::Unsupported, why));
            }
        };
        let (pool, storage) = (self.address.pool.as_deref(), Some(self.storage.name.as_str()));
        let clone = |vmid, description: &str, calls: &mut Calls<'_>| {
            let operation = Operation::Clone { into: vmid, name: into, description, full, pool, storage };
            calls.perform(from, &operation)
        };
        self.make(into, &from.node, |vmid, text| clone(vmid, text, calls))?;
        if has_tag && full {
            return Ok(());
        }
        let made = self.ours.known(into)?;
        calls.has(&made.place, &Operation::Describe { description: &made.text, tags: Some(TAG) })
    }

    fn attach(&self, vm: &str, name: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let full = || Failure::new(FailureKind::NoRoom, format!("{vm} has no free place for a disk"));
        let slot = self.server.free_slot(&ours.place, calls.limit).map_err(failure)?.ok_or_else(full)?;
        let storage = &self.storage.name;
        calls.has(&ours.place, &Operation::AttachDisk { slot, storage, mib: DISK_MIB })?;
        self.ours.change(vm, |ours| _ = ours.disks.insert(name.to_owned(), slot));
        Ok(())
    }

    fn migrate(&self, vm: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let power = self.server.power(&ours.place, calls.limit).map_err(failure)?;
        let target = self.other_node(&ours.place.node);
        let online = power.is_some_and(|power| power != Power::Off);
        let with_disks = !self.storage.is_shared;
        calls.has(&ours.place, &Operation::Migrate { target, online, with_disks })?;
        self.ours.change(vm, |ours| target.clone_into(&mut ours.place.node));
        Ok(())
    }

    /// The first disk of a VM.
    fn first_disk(&self, vm: &str, ours: &Ours, calls: &Calls<'_>) -> Result<Disk, Failure> {
        let none = || {
            Failure::new(FailureKind::Vanished, format!("{vm} has no disk whose storage and size are told"))
        };
        self.server.first_disk(&ours.place, calls.limit).map_err(failure)?.ok_or_else(none)
    }

    fn move_disk(&self, vm: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let disk = self.first_disk(vm, ours, calls)?;
        let other = self.other_storage.as_ref().filter(|other| other.name != disk.storage);
        let storage = &other.unwrap_or(&self.storage).name;
        calls.has(&ours.place, &Operation::MoveDisk { disk: &disk.name, storage })
    }

    fn resize_disk(&self, vm: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let disk = self.first_disk(vm, ours, calls)?;
        calls.has(&ours.place, &Operation::ResizeDisk { disk: &disk.name, mib: disk.mib + GROWTH_MIB })
    }

    fn act(&self, vm: &str, action: &Action, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let place = &ours.place;
        match action {
            Action::PowerOn => calls.has(place, &Operation::Start),
            Action::PowerOff => calls.has(place, &Operation::Stop),
            Action::Shutdown => calls.has(place, &Operation::Shutdown),
            Action::Reset => calls.has(place, &Operation::Reset),
            Action::Suspend => calls.has(place, &Operation::Suspend),
            Action::Resume => calls.has(place, &Operation::Resume),
            Action::Clone { into, kind } => self.clone_of(place, into, *kind, true, calls),
            Action::Migrate | Action::ColdMigrate => self.migrate(vm, ours, calls),
            Action::Remove => {
                calls.has(place, &Operation::Delete)?;
                self.ours.remove(vm);
                Ok(())
            }
            Action::CreateSnapshot { name } => calls.has(place, &Operation::CreateSnapshot { name }),
            Action::DeleteSnapshot { name } => calls.has(place, &Operation::DeleteSnapshot { name }),
            Action::RevertSnapshot { name } => calls.has(place, &Operation::Rollback { name }),
            Action::MoveDisk => self.move_disk(vm, ours, calls),
            Action::ResizeDisk => self.resize_disk(vm, ours, calls),
            Action::Reconfigure { note } => {
                let description = format!("{}\n{note}", ours.text);
                calls.has(place, &Operation::Describe { description: &description, tags: None })
            }
            Action::AttachDisk { name } => self.attach(vm, name, ours, calls),
            Action::DetachDisk { name } => {
                let none =
                    || Failure::new(FailureKind::Vanished, format!("{vm} has no disk {name:?} of this run"));
                let slot = *ours.disks.get(name).ok_or_else(none)?;
                calls.has(place, &Operation::DetachDisk { slot })?;
                self.ours.change(vm, |ours| _ = ours.disks.remove(name));
                Ok(())
            }
            Action::Resize
            | Action::Rebuild
            | Action::Shelve
            | Action::Unshelve
            | Action::AttachPort { .. }
            | Action::DetachPort { .. } => {
                let why = on_openstack_only(action.kind()).unwrap_or_default();
                Err(Failure::new(FailureKind::Unsupported, why))
            }
            Action::Console | Action::List => {
                let why = format!("{} is not for a VM of Proxmox VE", action.kind().name());
                Err(Failure::new(FailureKind::Unsupported, why))
            }
        }
    }

    fn listed(&self, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let (_, times) = self.server.timed_machines(calls.limit).map_err(failure)?;
        calls.add(&times);
        Ok(())
    }
}

impl Platform for OnProxmox {
    fn facts(&self) -> PlatformFacts {
        self.facts.clone()
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        lacks(self.nodes.len(), self.other_storage.is_some(), operation)
    }

    fn migrates_snapshots(&self) -> bool {
        self.storage.is_shared
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        let mut calls = self.calls(deadline);
        if let Some(template) = &self.template {
            let kind = if template.is_template { CloneKind::Linked } else { CloneKind::Full };
            return self.clone_of(&template.place, vm, kind, false, &mut calls);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let node = &self.nodes[turn % self.nodes.len()];
        let gib = self.options.disk_bytes.div_ceil(1 << 30).max(1);
        self.make(vm, node, |vmid, text| {
            let new = NewMachine {
                name: vm,
                description: text,
                tag: TAG,
                memory_mib: self.options.memory_bytes.div_ceil(1 << 20),
                disk: Some((&self.storage.name, gib)),
                bridge: self.address.bridge.as_deref(),
                pool: self.address.pool.as_deref(),
            };
            calls.perform(&Place { node: node.clone(), vmid }, &Operation::Create(new))
        })
    }

    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed {
        let mut calls = self.calls(deadline);
        let result = match (action, self.ours.known(vm)) {
            (Action::List, _) => self.listed(&mut calls),
            (_, Ok(ours)) => self.act(vm, action, &ours, &mut calls),
            (_, Err(why)) => Err(why),
        };
        Performed { phases: calls.phases, retries: calls.retries, job: None, result }
    }

    fn state(&self, vm: &str, deadline: Instant) -> Result<Option<VmState>, Failure> {
        let Ok(ours) = self.ours.known(vm) else { return Ok(None) };
        let power = self.server.power(&ours.place, Limit::at(deadline)).map_err(failure)?;
        Ok(power.map(state))
    }

    fn list(&self, deadline: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        let machines = self.server.machines(Limit::at(deadline)).map_err(failure)?;
        let mut listed = Vec::new();
        for machine in machines {
            let is_ours = machine.name.starts_with(&self.label) && !machine.name.ends_with(".shared");
            if is_ours && machine.tags.iter().any(|tag| tag == TAG) {
                // A list does not tell a VM that stands still from one that runs.
                let power = match machine.power {
                    Power::On => self.server.power(&machine.place, Limit::at(deadline)).map_err(failure)?,
                    power => Some(power),
                };
                listed.extend(power.map(|power| (machine.name, state(power))));
            }
        }
        Ok(listed)
    }

    fn sweep(&self, deadline: Instant) -> Result<usize, Failure> {
        let gone = |owned: &Owned| owned.mark.owner() == Owner::Gone;
        remove(&self.server, &self.address.to_string(), gone, deadline)
    }

    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure> {
        let of_run = |owned: &Owned| owned.mark.run == self.run && owned.is_for(VM);
        let removed = remove(&self.server, &self.address.to_string(), of_run, deadline)?;
        self.ours.clear();
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

/// What a cluster with so many nodes, and with or without a second storage, cannot do.
fn lacks(nodes: usize, disks_move: bool, operation: OperationKind) -> Option<String> {
    match operation {
        OperationKind::Console => Some(
            "consoles of Proxmox VE are opened by a browser's WebSocket, not by a call of its API".to_owned(),
        ),
        OperationKind::Migrate | OperationKind::ColdMigrate if nodes < 2 => {
            Some("VMs are made on one node only: it is the only one online, or node= names it".to_owned())
        }
        OperationKind::MoveDisk if !disks_move => Some(
            "there is no second storage for disks of VMs that is shared as the first one is, or is not"
                .to_owned(),
        ),
        _ => on_openstack_only(operation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_moves_nothing() {
        let lacks = |nodes, kind| super::lacks(nodes, false, kind).is_some();
        for kind in [OperationKind::Migrate, OperationKind::ColdMigrate] {
            assert!(lacks(1, kind) && !lacks(2, kind), "{kind:?}");
        }
        assert!(lacks(2, OperationKind::Console) && !lacks(1, OperationKind::Clone));
        assert!(
            lacks(2, OperationKind::MoveDisk) && super::lacks(1, true, OperationKind::MoveDisk).is_none()
        );
    }
}
