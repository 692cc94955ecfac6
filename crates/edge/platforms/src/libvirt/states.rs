//! How all VMs of a run are.

use virtbench_lab::{Made, Purpose};
use virtbench_libvirt::{Domain, Hypervisor};
use virtbench_mark::RunId;
use virtbench_operations::VmState;
use virtbench_record::FailureKind;

use super::refusals::failure;
use super::vm::state;
use crate::failure::Failure;

/// Names and states of a run's VMs on one hypervisor. Names only say where to look: whose a VM is it says itself.
pub(super) fn states(
    hypervisor: &Hypervisor,
    label: &str,
    run: &RunId,
) -> Result<Vec<(String, VmState)>, Failure> {
    let prefix = format!("{label}-");
    let mut found = Vec::new();
    for domain in hypervisor.domains().map_err(failure)? {
        let name = domain.name().map_err(failure)?;
        if !name.starts_with(&prefix) {
            continue;
        }
        match is_vm_of(&domain, run).and_then(|is_ours| Ok(is_ours.then_some(state(&domain)?))) {
            Ok(state) => found.extend(state.map(|state| (name, state))),
            // It was removed meanwhile.
            Err(error) if error.kind == FailureKind::Vanished => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_vm_of(domain: &Domain, run: &RunId) -> Result<bool, Failure> {
    let made = Made::read(&domain.xml().map_err(failure)?);
    Ok(made.is_some_and(|made| made.mark.run == *run && made.is_for(Purpose::Vm)))
}
