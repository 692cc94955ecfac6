//! Removes VMs that say that a run made them.

use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

use virtbench_lab::{LeftRun, MarkedThing};
use virtbench_mark::RunId;
use virtbench_proxmox::{FaultKind, Limit, Machine, Operation, Place, Power, Proxmox, ProxmoxError};

use super::failure::{failure, open};
use super::owned::Owned;
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, remove_each};

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
