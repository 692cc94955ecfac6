//! How all VMs of a run are.

use virtbench_libvirt::Hypervisor;
use virtbench_operations::VmState;
use virtbench_record::FailureKind;

use super::refusals::failure;
use super::vm::state;
use crate::failure::Failure;

/// Names and states of a run's VMs on one hypervisor.
pub(super) fn states(hypervisor: &Hypervisor, label: &str) -> Result<Vec<(String, VmState)>, Failure> {
    let prefix = format!("{label}-");
    let mut found = Vec::new();
    for domain in hypervisor.domains().map_err(failure)? {
        let name = domain.name().map_err(failure)?;
        if !name.starts_with(&prefix) {
            continue;
        }
        match state(&domain) {
            Ok(state) => found.push((name, state)),
            // It was removed meanwhile.
            Err(error) if error.kind == FailureKind::Vanished => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
