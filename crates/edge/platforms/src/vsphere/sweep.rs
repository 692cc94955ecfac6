//! Removes VMs that say that a run made them: several at a time.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{LeftRun, MarkedThing};
use virtbench_mark::RunId;
use virtbench_record::FailureKind;
use virtbench_vsphere::{
    FaultKind, Inventory, Machine, Operation, Power, Reference, Until, Vsphere, VsphereError,
};

use super::done::{failure, open};
use super::owned::Owned;
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, pauses, remove_each};

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
