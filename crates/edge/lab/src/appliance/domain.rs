//! An appliance in a domain of a hypervisor.

use virtbench_agent::protocol::appliance::{AddressOrder, MountOrder};

use super::mount_order::{DeviceNames, mount_order};
use super::spec::ApplianceSpec;
use crate::adapters::DEFAULT_ADAPTER;
use crate::libvirt::{DomainAppliance, LibvirtAppliances};
use crate::process::MachineError;

/// Boots a domain; returns it with what it is to mount.
pub(crate) fn boot(
    spec: &ApplianceSpec,
    place: &LibvirtAppliances,
) -> Result<(DomainAppliance, MountOrder), MachineError> {
    let names = DeviceNames::of_adapter(DEFAULT_ADAPTER);
    Ok((place.boot(&spec.parts())?, mount_order(spec, names, AddressOrder::Granted)))
}
