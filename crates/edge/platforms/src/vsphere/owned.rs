//! Whose a VM of vSphere's is: what was written when it was made, with the identity that it got, by which runs' VMs are removed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{LeftRun, MarkedThing, Sign, new_uuid, now_s};
use virtbench_mark::{Mark, RunId};
use virtbench_record::FailureKind;
use virtbench_vsphere::{
    Cluster, Disk, FaultKind, Hardware, Inventory, Machine, Operation, Own, Power, Reference, Shape, Until,
    Vsphere, VsphereError,
};

use super::done::{failure, open};
use crate::keeper::Keeper;
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, pauses, remove_each};

/// What a VM is for: its management is measured.
pub(super) const VM: &str = "vm";

/// What a VM is for: it is never started, and says that its run lives.
pub(super) const KEEPER: &str = "shared";

/// What a VM says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) mark: Mark,
    pub(super) uuid: String,
    pub(super) sign: Sign,
}

impl Owned {
    /// Of a VM that this process makes now.
    pub(super) fn new(run: &RunId, purpose: &str) -> Self {
        let mut sign = Sign::now();
        sign.host.retain(|letter| !letter.is_whitespace());
        Self { mark: Mark::new(run.clone(), purpose), uuid: new_uuid(), sign }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.mark.purpose() == purpose
    }

    /// As it is written into the VM's configuration.
    pub(super) fn text(&self) -> String {
        let sign: String =
            self.sign.attributes().iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} uuid={}{sign}", self.mark, self.uuid)
    }

    /// The same for a VM that is made.
    pub(super) fn own<'a>(&'a self, text: &'a str) -> Own<'a> {
        Own { text, uuid: &self.uuid }
    }

    /// Reads it from a VM; nothing where virtbench did not make that VM.
    pub(super) fn read(machine: &Machine) -> Option<Self> {
        let (mark, rest) = machine.label.as_deref()?.split_once(" uuid=")?;
        let (uuid, words) = rest.split_once(' ').unwrap_or((rest, ""));
        let sign = Sign::read(|name| {
            let mut values = words.split(' ').filter_map(|word| word.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        });
        let is_its = machine.uuid.as_deref().is_some_and(|its| its.eq_ignore_ascii_case(uuid));
        let mark = Mark::parse(mark).filter(|_| is_its)?;
        Some(Self { mark, uuid: uuid.to_owned(), sign })
    }
}

/// How long a sign, or the end of the VM, may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The least memory of a VM, in MiB.
const LEAST_MIB: u64 = 4;

/// Makes the VM.
pub(super) fn keeper(
    server: &Arc<Vsphere>,
    cluster: &Cluster,
    (label, run): (&str, &RunId),
    deadline: Instant,
) -> Result<Keeper, Failure> {
    let (mut owned, name) = (Owned::new(run, KEEPER), format!("{label}.shared"));
    let (text, host) = (owned.text(), &cluster.hosts[0]);
    let shape = Shape { memory_mib: Some(LEAST_MIB), disk_kib: None };
    let operation = Operation::Create { name: &name, own: owned.own(&text), shape, cluster, host };
    let made = server.perform(&operation, Until::Done, deadline).1.map_err(failure)?;
    let none = || Failure::new(FailureKind::Garbled, "a VM was made and not named");
    let machine = made.ok_or_else(none)?;
    let (signs, removes) = (Arc::clone(server), Arc::clone(server));
    let marked = machine.clone();
    let done = |server: &Vsphere, operation: &Operation<'_>| {
        server.perform(operation, Until::Done, Instant::now() + LIMIT).1.map(drop).map_err(failure)
    };
    let sign = move || {
        owned.sign.seen_s = now_s();
        done(&signs, &Operation::Mark { machine: &marked, text: &owned.text() })
    };
    Keeper::start(sign, move || done(&removes, &Operation::Destroy(&machine)))
}

/// vSphere gives memory in multiples of this, in MiB.
const STEP_MIB: u64 = 4;

/// Memory and a disk of so many bytes.
pub(super) fn shape_of(memory_bytes: u64, disk_bytes: u64) -> Shape {
    let memory_mib = memory_bytes.div_ceil(1 << 20).next_multiple_of(STEP_MIB);
    Shape { memory_mib: Some(memory_mib), disk_kib: Some(disk_bytes.div_ceil(1 << 10)) }
}

/// What VMs will have, in words; those of a template keep its disk where that is larger.
pub(super) fn in_words(wanted: Shape, template: Option<&Hardware>) -> String {
    let kib = wanted.disk_kib.unwrap_or_default();
    let larger = template.and_then(|template| template.disks.first()).filter(|(disk, _)| disk.kib > kib);
    let disk = match larger {
        Some((disk, _)) => {
            format!("the template's disk of {}, which is larger than asked for", mib(disk.kib))
        }
        None => format!("a disk of {}", mib(kib)),
    };
    let others = template.map_or(0, |template| template.disks.len().saturating_sub(1));
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("each VM has {} MiB of memory, {disk}{others}", wanted.memory_mib.unwrap_or_default())
}

fn mib(kib: u64) -> String {
    if kib.is_multiple_of(1024) { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") }
}

/// Gives a new VM the disk that it is to have, and sees whether it has what was asked for.
pub(super) fn give_shape(
    server: &Vsphere,
    machine: &Reference,
    wanted: Shape,
    deadline: Instant,
) -> Result<(), Failure> {
    let has = server.hardware(machine, deadline).map_err(failure)?;
    let kib = wanted.disk_kib.unwrap_or_default();
    let done = |operation| server.perform(&operation, Until::Done, deadline).1.map_err(failure);
    match has.disks.first() {
        None => {
            let (slot, _) = server.disks(machine, deadline).map_err(failure)?;
            done(Operation::AttachDisk { machine, slot, kib })?;
        }
        Some((disk, file)) if disk.kib < kib => {
            done(Operation::GrowDisk { machine, disk: *disk, file, kib })?;
        }
        Some(_) => return check(&has, wanted),
    }
    check(&server.hardware(machine, deadline).map_err(failure)?, wanted)
}

fn check(has: &Hardware, wanted: Shape) -> Result<(), Failure> {
    let kib = has.disks.first().map_or(0, |(disk, _): &(Disk, String)| disk.kib);
    if Some(has.memory_mib) == wanted.memory_mib && wanted.disk_kib.is_none_or(|least| kib >= least) {
        return Ok(());
    }
    let why = format!(
        "the server says that a new VM has {} MiB of memory and a disk of {}, and {} MiB and {} were asked for",
        has.memory_mib,
        mib(kib),
        wanted.memory_mib.unwrap_or_default(),
        mib(wanted.disk_kib.unwrap_or_default())
    );
    Err(Failure::new(FailureKind::Refused, why))
}

/// VMs that are removed at once: as many operations of a kind a vCenter lets a host or a datastore do.
const AT_ONCE: usize = 8;

/// How long the server may be away before the rest is left.
const OUTAGE_LIMIT: Duration = Duration::from_secs(60);

/// The runs that have something there.
///
/// # Errors
/// The address makes no sense, or the server cannot be reached or refuses.
pub(crate) fn runs_on(address: &str, deadline: Instant) -> Result<Vec<LeftRun>, Failure> {
    let (server, _) = open(address, deadline)?;
    Ok(runs_in(&server.inventory(deadline).map_err(failure)?))
}

fn runs_in(inventory: &Inventory) -> Vec<LeftRun> {
    let thing = |machine: &Machine| {
        let Owned { mark, sign, .. } = Owned::read(machine)?;
        Some(MarkedThing { mark, sign, guest_runs: false, names: vec![machine.name.to_string()] })
    };
    LeftRun::gather(inventory.iter().filter_map(|(_, machine)| thing(machine)))
}

/// Removes what those of these runs have left that are thought dead; how many VMs.
///
/// # Errors
/// As for [`runs_on`], or a VM cannot be removed.
pub(crate) fn remove_dead(
    address: &str,
    runs: &BTreeSet<RunId>,
    deadline: Instant,
) -> Result<usize, Failure> {
    let (server, parsed) = open(address, deadline)?;
    let left = runs_in(&server.inventory(deadline).map_err(failure)?);
    let dead = dead_among(left, runs);
    remove(&server, &parsed.to_string(), |owned| dead.contains(&owned.mark.run), deadline)
}

/// Removes the VMs that this is true of; how many. A server that is away for a while is waited for.
pub(super) fn remove(
    server: &Vsphere,
    address: &str,
    whose: impl Fn(&Owned) -> bool,
    deadline: Instant,
) -> Result<usize, Failure> {
    let (mut removed, mut pauses, mut until) = (0, pauses(), None);
    loop {
        let batch = server.inventory(deadline).map_err(failure).and_then(|inventory| {
            let is_its = |machine: &Machine| Owned::read(machine).is_some_and(|owned| whose(&owned));
            let wanted = inventory.iter().filter(|(_, machine)| is_its(machine));
            let wanted = wanted.map(|(reference, machine)| (reference.clone(), machine.power)).collect();
            let wanted: Vec<(Reference, Power)> = wanted;
            remove_each(&wanted, (AT_ONCE, deadline), address, &mut removed, |(machine, power), until| {
                remove_one(server, machine, *power, until).map_err(failure)
            })
        });
        match batch {
            Err(error) if error.kind == FailureKind::Unreachable => {
                let until = *until.get_or_insert_with(|| Instant::now() + OUTAGE_LIMIT);
                if Instant::now() >= until {
                    return Err(error);
                }
                thread::sleep(pauses.next().unwrap_or(EACH));
            }
            done => return done.map(|()| removed),
        }
    }
}

fn remove_one(
    server: &Vsphere,
    machine: &Reference,
    power: Power,
    deadline: Instant,
) -> Result<(), VsphereError> {
    let gone = |error: &VsphereError| error.fault() == Some(FaultKind::NotFound);
    let off = |error: &VsphereError| error.fault() == Some(FaultKind::InvalidPowerState);
    if power != Power::Off {
        match server.perform(&Operation::PowerOff(machine), Until::Done, deadline).1 {
            Err(error) if !off(&error) && !gone(&error) => return Err(error),
            _ => {}
        }
    }
    match server.perform(&Operation::Destroy(machine), Until::Done, deadline).1 {
        Err(error) if !gone(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use virtbench_vsphere::{Power, Slot};

    use super::*;

    #[test]
    fn a_vm_is_ours_by_what_was_written_and_its_copy_is_not() {
        let owned = Owned::new(&RunId::new_random(), VM);
        let machine = |label: &str, uuid: &str| Machine {
            name: "virtbench-1".into(),
            power: Power::Off,
            host: None,
            template: false,
            label: Some(label.into()),
            uuid: Some(uuid.into()),
        };
        assert_eq!(Owned::read(&machine(&owned.text(), &owned.uuid.to_uppercase())), Some(owned.clone()));
        assert_eq!(Owned::read(&machine(&owned.text(), &new_uuid())), None, "a copy");
        assert_eq!(Owned::read(&machine("virtbench-a-b-1-1-0", &owned.uuid)), None, "a name");
        assert_eq!(Owned::read(&machine(&owned.mark.to_string(), &owned.uuid)), None);
    }

    fn template(kib: u64) -> Hardware {
        let disk = Disk { key: 1, slot: Slot { controller: 2, unit: 0 }, kib };
        Hardware { memory_mib: 64, disks: vec![(disk, String::new())] }
    }

    #[test]
    fn what_vms_have_is_said_and_checked() {
        let wanted = shape_of((512 << 20) - 1, 2 << 30);
        assert_eq!(wanted, Shape { memory_mib: Some(512), disk_kib: Some(2 << 20) });
        assert_eq!(in_words(wanted, None), "each VM has 512 MiB of memory, a disk of 2048 MiB");
        assert!(in_words(wanted, Some(&template(4 << 20))).contains("template's disk of 4096 MiB"));
        let little = check(&template(2 << 20), wanted).unwrap_err();
        assert!(little.message.contains("64 MiB of memory"), "{little}");
        assert_eq!(check(&Hardware { memory_mib: 512, ..template(2 << 20) }, wanted), Ok(()));
        assert!(check(&Hardware { memory_mib: 512, ..template(1) }, wanted).is_err());
    }
}
