//! Whose a VM of Proxmox VE's is: what its description says, with the number and the name that it got, by which runs' VMs are removed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{LeftRun, MarkedThing, Sign, now_s};
use virtbench_mark::{Mark, RunId};
use virtbench_proxmox::{
    FaultKind, Limit, Machine, NewMachine, Operation, Place, Power, Proxmox, ProxmoxError,
};

use super::failure::{failure, open};
use crate::keeper::Keeper;
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, remove_each};

/// What a VM is for: its management is measured.
pub(super) const VM: &str = "vm";

/// What a VM is for: it is never started, and says that its run lives.
pub(super) const KEEPER: &str = "shared";

/// The tag of every VM that virtbench makes.
pub(super) const TAG: &str = "virtbench";

/// What a VM says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) mark: Mark,
    pub(super) vmid: u32,
    pub(super) name: String,
    pub(super) sign: Sign,
}

impl Owned {
    /// Of a VM that this process makes now.
    pub(super) fn new(run: &RunId, purpose: &str, vmid: u32, name: &str) -> Self {
        let mut sign = Sign::now();
        sign.host.retain(|letter| !letter.is_whitespace());
        Self { mark: Mark::new(run.clone(), purpose), vmid, name: name.to_owned(), sign }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.mark.purpose() == purpose
    }

    /// The first line of its description.
    pub(super) fn text(&self) -> String {
        let sign: String =
            self.sign.attributes().iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} vmid={} name={}{sign}", self.mark, self.vmid, self.name)
    }

    /// Whether a VM may be one of virtbench's, so that its description is worth a look.
    pub(super) fn may_be(machine: &Machine) -> bool {
        machine.tags.iter().any(|tag| tag == TAG) || machine.name.starts_with(TAG)
    }

    /// Reads it from a VM; nothing where virtbench did not make that VM. A copy and a restored VM have another number. A VM that was just
    /// cloned from one without the tag has none yet, and the name that it was made with.
    pub(super) fn read(machine: &Machine, description: &str) -> Option<Self> {
        let line = description.lines().next()?;
        let (mark, rest) = line.split_once(" vmid=")?;
        let (vmid, words) = rest.split_once(' ')?;
        let value = |name: &str| {
            let mut values = words.split(' ').filter_map(|word| word.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let name = value("name")?;
        let has_tag = machine.tags.iter().any(|tag| tag == TAG);
        let is_it = vmid.parse() == Ok(machine.place.vmid) && (has_tag || machine.name == name);
        let mark = Mark::parse(mark).filter(|_| is_it)?;
        Some(Self { mark, vmid: machine.place.vmid, name: name.to_owned(), sign: Sign::read(value) })
    }
}

/// The largest number of a VM.
const LARGEST: u32 = 999_999_999;

/// How many numbers are tried for one VM: others may take those that were free.
const TRIES: u32 = 50;

/// The next number that may be free.
#[derive(Debug)]
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    /// Numbers from this one on.
    pub(super) fn from(first: u32) -> Self {
        Self(AtomicU32::new(first))
    }

    /// Makes something with the first number that nobody has, and gives that number.
    pub(super) fn take(
        &self,
        mut make: impl FnMut(u32) -> Result<(), ProxmoxError>,
    ) -> (u32, Result<(), ProxmoxError>) {
        let mut tries = 0;
        loop {
            let number = self.0.fetch_add(1, Ordering::Relaxed).min(LARGEST);
            let made = make(number);
            tries += 1;
            let is_taken = made.as_ref().is_err_and(|error| error.fault() == Some(FaultKind::AlreadyExists));
            if !is_taken || tries == TRIES {
                return (number, made);
            }
        }
    }
}

/// How long a sign, or the end of the VM, may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The least memory of a VM, in MiB.
const LEAST_MIB: u64 = 16;

/// Makes the VM.
pub(super) fn keeper(
    server: &Arc<Proxmox>,
    (node, pool): (&str, Option<&str>),
    (label, run): (&str, &RunId),
    numbers: &Numbers,
    limit: Limit,
) -> Result<Keeper, Failure> {
    let name = format!("{label}.shared");
    let at = |vmid| Place { node: node.to_owned(), vmid };
    let (vmid, made) = numbers.take(|vmid| {
        let description = Owned::new(run, KEEPER, vmid, &name).text();
        let memory_mib = LEAST_MIB;
        let (name, description) = (name.as_str(), description.as_str());
        let new = NewMachine { name, description, tag: TAG, memory_mib, disk: None, bridge: None, pool };
        server.perform(&at(vmid), &Operation::Create(new), limit).1
    });
    made.map_err(failure)?;
    let mut owned = Owned::new(run, KEEPER, vmid, &name);
    let (signs, removes) = (Arc::clone(server), Arc::clone(server));
    let (marked, place) = (at(vmid), at(vmid));
    let done = |server: &Proxmox, place: &Place, operation: &Operation<'_>| {
        server.perform(place, operation, Limit::at(Instant::now() + LIMIT)).1.map_err(failure)
    };
    let sign = move || {
        owned.sign.seen_s = now_s();
        done(&signs, &marked, &Operation::Describe { description: &owned.text(), tags: None })
    };
    Keeper::start(sign, move || done(&removes, &place, &Operation::Delete))
}

/// VMs that are removed at once.
const AT_ONCE: usize = 4;

/// The runs that have something there.
///
/// # Errors
/// The address makes no sense, or the server cannot be reached or refuses.
pub(crate) fn runs_on(address: &str, deadline: Instant) -> Result<Vec<LeftRun>, Failure> {
    let (server, _) = open(address, deadline)?;
    runs_of(&server, deadline)
}

fn runs_of(server: &Proxmox, deadline: Instant) -> Result<Vec<LeftRun>, Failure> {
    let machines = server.machines(Limit::at(deadline)).map_err(failure)?;
    let owned = owned_machines(server, &machines, deadline)?;
    Ok(LeftRun::gather(owned.into_iter().map(|(machine, Owned { mark, sign, .. })| MarkedThing {
        mark,
        sign,
        guest_runs: false,
        names: vec![format!("{} ({})", machine.name, machine.place.vmid)],
    })))
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
    let dead = dead_among(runs_of(&server, deadline)?, runs);
    remove(&server, &parsed.to_string(), |owned| dead.contains(&owned.mark.run), deadline)
}

/// Those of these VMs that virtbench made, by what their descriptions say.
pub(super) fn owned_machines(
    server: &Proxmox,
    machines: &[Machine],
    deadline: Instant,
) -> Result<Vec<(Machine, Owned)>, Failure> {
    let mut owned = Vec::new();
    for machine in machines.iter().filter(|machine| Owned::may_be(machine)) {
        let description = server.description(&machine.place, Limit::at(deadline)).map_err(failure)?;
        let found = description.and_then(|description| Owned::read(machine, &description));
        owned.extend(found.map(|found| (machine.clone(), found)));
    }
    Ok(owned)
}

/// Removes the VMs that this is true of; how many.
pub(super) fn remove(
    server: &Proxmox,
    address: &str,
    whose: impl Fn(&Owned) -> bool,
    deadline: Instant,
) -> Result<usize, Failure> {
    let machines = server.machines(Limit::at(deadline)).map_err(failure)?;
    let owned = owned_machines(server, &machines, deadline)?;
    let wanted: Vec<Place> =
        owned.into_iter().filter(|(_, owned)| whose(owned)).map(|(machine, _)| machine.place).collect();
    let mut removed = 0;
    remove_each(&wanted, (AT_ONCE, deadline), address, &mut removed, |place, until| {
        remove_one(server, place, Limit::at(until)).map_err(failure)
    })?;
    Ok(removed)
}

/// A VM that something holds is waited for; one that is gone is removed.
fn remove_one(server: &Proxmox, place: &Place, limit: Limit) -> Result<(), ProxmoxError> {
    let mut pauses = crate::removal::pauses();
    loop {
        let Some(power) = server.power(place, limit)? else { return Ok(()) };
        let stopped =
            if power == Power::Off { Ok(()) } else { server.perform(place, &Operation::Stop, limit).1 };
        let removed = match stopped {
            Err(error) if error.fault() != Some(FaultKind::WrongState) => Err(error),
            _ => server.perform(place, &Operation::Delete, limit).1,
        };
        let pause = pauses.next().unwrap_or(EACH);
        match removed {
            Err(error) if error.fault() == Some(FaultKind::NotFound) => return Ok(()),
            Err(error) if error.fault() == Some(FaultKind::Locked) && limit.left() > pause => {
                thread::sleep(pause)
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use virtbench_proxmox::{Fault, Place, Power};

    use super::*;

    #[test]
    fn a_vm_of_proxmox_is_ours_by_its_number_and_tag_and_its_copy_is_not() {
        let owned = Owned::new(&RunId::new_random(), VM, 900, "virtbench-1");
        let machine = |vmid: u32, name: &str, tags: &[&str]| Machine {
            place: Place { node: "pve1".into(), vmid },
            name: name.into(),
            power: Power::Off,
            is_template: false,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        let read = |machine: &Machine, text: &str| Owned::read(machine, text);
        let noted = format!("{}\nsomething else\n", owned.text());
        assert_eq!(read(&machine(900, "renamed", &["a", TAG]), &noted), Some(owned.clone()));
        assert_eq!(
            read(&machine(900, "virtbench-1", &[]), &owned.text()),
            Some(owned.clone()),
            "not yet tagged"
        );
        assert_eq!(read(&machine(900, "renamed", &[]), &owned.text()), None, "neither tag nor name");
        assert_eq!(read(&machine(901, "virtbench-1", &[TAG]), &owned.text()), None, "a copy");
        assert_eq!(read(&machine(900, "virtbench-1", &[TAG]), ""), None, "a name and a tag");
        assert_eq!(read(&machine(900, "virtbench-1", &[TAG]), &owned.mark.to_string()), None);
        assert!(Owned::may_be(&machine(1, "x", &[TAG])) && !Owned::may_be(&machine(1, "x", &["y"])));
    }

    #[test]
    fn numbers_that_others_have_are_passed_over_and_other_failures_are_not() {
        let fault = |words: &str| ProxmoxError::Fault { what: "x".into(), fault: Fault::new(500, words) };
        let numbers = Numbers::from(100);
        let others = |number| if number < 103 { Err(fault("VM 1 already exists")) } else { Ok(()) };
        assert_eq!(numbers.take(others), (103, Ok(())));
        let full = |_| Err(fault("No space left on device"));
        assert_eq!(numbers.take(full).0, 104);
        assert_eq!(numbers.take(|_| Err(fault("already exists"))).0, 104 + TRIES);
    }
}
