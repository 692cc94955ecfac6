//! The VMs of a run: how each is, and so what may be done with it.

use std::collections::BTreeMap;

use virtbench_record::{CloneKind, OperationKind};
use virtbench_units::Random;

/// A VM has at most so many snapshots of the run.
const MOST_SNAPSHOTS: usize = 3;
/// And so many disks besides its first.
const MOST_DISKS: usize = 2;
/// And so many network cards.
const MOST_PORTS: usize = 2;
/// Its first disk grows so many times.
const MOST_GROWTH: u32 = 64;

/// How a VM is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VmState {
    /// It does not run.
    Off,
    /// It runs.
    On,
    /// It stands still.
    Suspended,
    /// It has no host.
    Shelved,
}

/// What differs between platforms and runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Whether a VM with snapshots can be migrated.
    pub migrates_snapshots: bool,
    /// No VM is removed where there are no more than these.
    pub fewest: usize,
    /// No VM is cloned where there are as many.
    pub most: usize,
    /// How clones' disks are made, in turn.
    pub clones: Vec<CloneKind>,
    /// Whether a VM whose disk is an overlay of another can be cloned in every way.
    pub clones_overlays: bool,
    /// Whether a VM runs as soon as it is made, and is removed while it runs: then clones are made of what the run's first VMs are made of, whatever
    /// those do.
    pub starts_clones: bool,
    /// Whether a VM that runs can be moved with a pause; else only one that is off.
    pub cold_migrates_running: bool,
}

impl Rules {
    /// For a run that begins with `vms` VMs: their number stays within a half and the double of it.
    #[must_use]
    pub fn new(vms: u32, migrates_snapshots: bool) -> Self {
        let vms = vms as usize;
        Self {
            migrates_snapshots,
            fewest: (vms / 2).max(1),
            most: (2 * vms).max(2),
            clones: vec![CloneKind::Full],
            clones_overlays: true,
            starts_clones: false,
            cold_migrates_running: false,
        }
    }
}

/// An operation and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The operation.
    pub kind: OperationKind,
    /// The number of its VM; nothing where it is for none.
    pub vm: Option<u32>,
    /// The number of the VM, snapshot, disk or network card that it makes, or of what it takes away.
    pub item: Option<u32>,
    /// How a clone's disk is made.
    pub clone: Option<CloneKind>,
}

/// What is known of a VM after an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The operation did what it is for.
    Done,
    /// It did not, and the VM is so.
    NotDone(VmState),
    /// The VM is gone, or its state is unknown: nothing more is done with it.
    Lost,
}

/// A kept state of a VM.
#[derive(Debug, Clone, Copy)]
struct Snapshot {
    number: u32,
    /// The VM was off.
    is_off: bool,
}

#[derive(Debug, Clone)]
struct Vm {
    state: VmState,
    snapshots: Vec<Snapshot>,
    disks: Vec<u32>,
    ports: Vec<u32>,
    /// How often its first disk has grown.
    grown: u32,
    busy: bool,
    /// It is being removed.
    is_leaving: bool,
    /// Its disk stands for itself.
    is_whole: bool,
}

impl Vm {
    /// One that is off.
    fn new(is_whole: bool) -> Self {
        Self {
            state: VmState::Off,
            snapshots: Vec::new(),
            disks: Vec::new(),
            ports: Vec::new(),
            grown: 0,
            busy: false,
            is_leaving: false,
            is_whole,
        }
    }
}

/// All VMs of a run, by number.
#[derive(Debug, Clone)]
pub struct Vms {
    vms: BTreeMap<u32, Vm>,
    rules: Rules,
    /// Numbers of VMs, snapshots, disks and network cards are never used again.
    next: u32,
    /// Clones that were chosen.
    cloned: usize,
}

impl Vms {
    /// These numbers of VMs, all of them off.
    #[must_use]
    pub fn new(numbers: impl IntoIterator<Item = u32>, rules: Rules) -> Self {
        let vms: BTreeMap<u32, Vm> = numbers.into_iter().map(|number| (number, Vm::new(true))).collect();
        let next = vms.last_key_value().map_or(0, |(last, _)| last + 1);
        Self { vms, rules, next, cloned: 0 }
    }

    /// How many there are, and how many of them run.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.vms.len(), self.vms.values().filter(|vm| vm.state == VmState::On).count())
    }

    /// How a VM is, as far as it is known.
    #[must_use]
    pub fn state(&self, number: u32) -> Option<VmState> {
        self.vms.get(&number).map(|vm| vm.state)
    }

    /// Whether an operation may be done with a VM now.
    #[must_use]
    pub fn is_legal(&self, kind: OperationKind, number: u32) -> bool {
        let Some(vm) = self.vms.get(&number) else { return false };
        let (off, on) = (vm.state == VmState::Off, vm.state == VmState::On);
        let snapshots = vm.snapshots.len();
        !vm.busy
            && match kind {
                OperationKind::PowerOn => off,
                OperationKind::PowerOff
                | OperationKind::Shutdown
                | OperationKind::Reset
                | OperationKind::Suspend
                | OperationKind::Console => on,
                OperationKind::Resume => vm.state == VmState::Suspended,
                OperationKind::Clone if self.rules.starts_clones => {
                    (off || on) && self.vms.len() < self.rules.most
                }
                OperationKind::Remove if self.rules.starts_clones => on && self.staying() > self.rules.fewest,
                OperationKind::Clone => {
                    off && self.vms.len() < self.rules.most && (vm.is_whole || self.rules.clones_overlays)
                }
                OperationKind::Remove => {
                    off && self.staying() > self.rules.fewest && !self.is_last_source(number)
                }
                OperationKind::Migrate => on && (snapshots == 0 || self.rules.migrates_snapshots),
                OperationKind::CreateSnapshot => (off || on) && snapshots < MOST_SNAPSHOTS,
                OperationKind::DeleteSnapshot => (off || on) && snapshots > 0,
                // Whether a VM runs afterwards that ran when its state was kept is each platform's own.
                OperationKind::RevertSnapshot => off && vm.snapshots.last().is_some_and(|last| last.is_off),
                OperationKind::Reconfigure => off || on,
                // The disks of a snapshot stay as they are.
                OperationKind::AttachDisk => off && snapshots == 0 && vm.disks.len() < MOST_DISKS,
                OperationKind::DetachDisk => off && snapshots == 0 && !vm.disks.is_empty(),
                OperationKind::MoveDisk => off && snapshots == 0,
                OperationKind::ResizeDisk => off && snapshots == 0 && vm.grown < MOST_GROWTH,
                OperationKind::Shelve => on,
                OperationKind::Unshelve => vm.state == VmState::Shelved,
                OperationKind::ColdMigrate => {
                    (off || on && self.rules.cold_migrates_running)
                        && (snapshots == 0 || self.rules.migrates_snapshots)
                }
                OperationKind::Resize => (off || on) && (snapshots == 0 || self.rules.migrates_snapshots),
                OperationKind::Rebuild => off || on,
                OperationKind::AttachPort => (off || on) && vm.ports.len() < MOST_PORTS,
                OperationKind::DetachPort => (off || on) && !vm.ports.is_empty(),
                OperationKind::List => false,
            }
    }

    /// VMs that are not being removed.
    fn staying(&self) -> usize {
        self.vms.values().filter(|vm| !vm.is_leaving).count()
    }

    /// Whether no other VM could be cloned once this one is gone: those that run may never be switched off.
    fn is_last_source(&self, number: u32) -> bool {
        let mut others = self.vms.iter().filter(|(other, vm)| **other != number && !vm.is_leaving);
        !others.any(|(_, vm)| vm.state == VmState::Off && (vm.is_whole || self.rules.clones_overlays))
    }

    /// Whether no VM has an operation in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.vms.values().all(|vm| !vm.busy)
    }

    /// One of the VMs with which it may be done, each as likely as the others, which is busy from now on.
    pub fn choose(&mut self, kind: OperationKind, random: &mut Random) -> Option<Choice> {
        if kind == OperationKind::List {
            return Some(Choice { kind, vm: None, item: None, clone: None });
        }
        let legal: Vec<u32> =
            self.vms.keys().copied().filter(|number| self.is_legal(kind, *number)).collect();
        let index = random.below(u64::try_from(legal.len()).ok().filter(|count| *count > 0)?);
        let number = legal[usize::try_from(index).ok()?];
        let vm = self.vms.get_mut(&number)?;
        vm.busy = true;
        vm.is_leaving = kind == OperationKind::Remove;
        let item = match kind {
            OperationKind::Clone
            | OperationKind::CreateSnapshot
            | OperationKind::AttachDisk
            | OperationKind::AttachPort => {
                self.next += 1;
                Some(self.next - 1)
            }
            OperationKind::DeleteSnapshot | OperationKind::RevertSnapshot => {
                vm.snapshots.last().map(|last| last.number)
            }
            OperationKind::DetachDisk => vm.disks.last().copied(),
            OperationKind::DetachPort => vm.ports.last().copied(),
            _ => None,
        };
        let clone = (kind == OperationKind::Clone).then(|| {
            let ways = &self.rules.clones;
            let way = ways.get(self.cloned % ways.len().max(1)).copied().unwrap_or_default();
            self.cloned += 1;
            way
        });
        Some(Choice { kind, vm: Some(number), item, clone })
    }

    /// An operation that was chosen is over.
    pub fn settle(&mut self, choice: &Choice, settled: Settled) {
        let Some(number) = choice.vm else { return };
        let Some(vm) = self.vms.get_mut(&number) else { return };
        (vm.busy, vm.is_leaving) = (false, false);
        match settled {
            Settled::NotDone(state) => vm.state = state,
            Settled::Lost => drop(self.vms.remove(&number)),
            Settled::Done => self.done(choice, number),
        }
    }

    fn done(&mut self, choice: &Choice, number: u32) {
        let Some(vm) = self.vms.get_mut(&number) else { return };
        match (choice.kind, choice.item) {
            (OperationKind::PowerOn | OperationKind::Resume | OperationKind::Unshelve, _) => {
                vm.state = VmState::On;
            }
            (OperationKind::Shelve, _) => vm.state = VmState::Shelved,
            (OperationKind::PowerOff | OperationKind::Shutdown, _) => vm.state = VmState::Off,
            (OperationKind::ResizeDisk, _) => vm.grown += 1,
            (OperationKind::Suspend, _) => vm.state = VmState::Suspended,
            (OperationKind::Remove, _) => drop(self.vms.remove(&number)),
            (OperationKind::Clone, Some(into)) => {
                // The platform copies disks and description, and no snapshots.
                let is_whole = choice.clone.is_none_or(CloneKind::is_whole);
                let state = if self.rules.starts_clones { VmState::On } else { VmState::Off };
                self.vms.insert(into, Vm { state, ..Vm::new(is_whole) });
            }
            (OperationKind::CreateSnapshot, Some(number)) => {
                vm.snapshots.push(Snapshot { number, is_off: vm.state == VmState::Off });
            }
            (OperationKind::DeleteSnapshot, Some(item)) => vm.snapshots.retain(|one| one.number != item),
            (OperationKind::AttachDisk, Some(item)) => vm.disks.push(item),
            (OperationKind::DetachDisk, Some(item)) => vm.disks.retain(|one| *one != item),
            (OperationKind::AttachPort, Some(item)) => vm.ports.push(item),
            (OperationKind::DetachPort, Some(item)) => vm.ports.retain(|one| *one != item),
            _ => {}
        }
    }
}
