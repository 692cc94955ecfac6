//! An appliance in a domain of a hypervisor.

use virtbench_agent::protocol::appliance::{AddressOrder, DataOrder, DiskPlace, InterfaceOrder, MountOrder};

use super::host_names::host_names;
use super::spec::ApplianceSpec;
use crate::adapters::DEFAULT_ADAPTER;
use crate::libvirt::{DomainAppliance, DomainParts, LibvirtAppliances};
use crate::process::MachineError;

/// What the guest's kernel calls its network interface.
const INTERFACE: &str = "eth0";

/// Boots a domain; returns it with what it is to mount.
pub(crate) fn boot(
    spec: &ApplianceSpec,
    place: &LibvirtAppliances,
) -> Result<(DomainAppliance, MountOrder), MachineError> {
    let parts = DomainParts {
        name: &spec.name,
        root: &spec.root,
        data: spec.data.as_deref(),
        vcpus: spec.vcpus,
        memory_bytes: spec.memory_bytes,
    };
    Ok((place.boot(&parts)?, order(spec)))
}

fn order(spec: &ApplianceSpec) -> MountOrder {
    let disk = |index| DiskPlace::Disk { name_prefix: DEFAULT_ADAPTER.disk_prefix.to_owned(), index };
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: disk(0),
        data: spec.recipe.data.as_ref().map(|data| DataOrder {
            disk: disk(1),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        links: Vec::new(),
        hosts: host_names(&spec.tiers),
        screen: false,
        interface: Some(InterfaceOrder { name: INTERFACE.into(), address: AddressOrder::Granted }),
    }
}
