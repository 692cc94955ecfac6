//! What an appliance stands on, as its agent is told.

use virtbench_agent::protocol::appliance::{AddressOrder, DataOrder, DiskPlace, InterfaceOrder, MountOrder};

use super::host_names::host_names;
use super::spec::ApplianceSpec;
use crate::adapters::{Adapter, DEFAULT_ADAPTER};
use crate::cable::CableEnd;

/// What the guest's kernel calls its first network interface.
const INTERFACE: &str = "eth0";

/// The interface at the end of a cable; the kernel numbers them in the order of QEMU's devices.
fn link((number, cable): (usize, &CableEnd)) -> InterfaceOrder {
    let (address, prefix) = (cable.address().octets(), cable.prefix());
    InterfaceOrder { name: format!("eth{number}"), address: AddressOrder::Fixed { address, prefix } }
}

/// Natively: block devices by their nodes, and an interface where it has one of its own.
pub(crate) fn mount_order_of_nodes(
    spec: &ApplianceSpec,
    root: &str,
    data: Option<&str>,
    interface: Option<InterfaceOrder>,
) -> MountOrder {
    let node = |path: &str| DiskPlace::Node(path.to_owned());
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: node(root),
        data: data.zip(spec.recipe.data.as_ref()).map(|(path, data)| DataOrder {
            disk: node(path),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        interface,
        links: Vec::new(),
        hosts: host_names(&spec.tiers),
        screen: false,
    }
}

/// The root is the guest's first disk, the data the next, on this adapter.
pub(crate) fn mount_order(spec: &ApplianceSpec, data_adapter: &Adapter, address: AddressOrder) -> MountOrder {
    let disk = |prefix: &str, index| DiskPlace::Disk { name_prefix: prefix.to_owned(), index };
    let (root, prefix) = (DEFAULT_ADAPTER.disk_prefix, data_adapter.disk_prefix);
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: disk(root, 0),
        data: spec.recipe.data.as_ref().map(|data| DataOrder {
            disk: disk(prefix, usize::from(prefix == root)),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        links: (1..).zip(&spec.tiers.cables).map(link).collect(),
        hosts: host_names(&spec.tiers),
        screen: spec.recipe.screen,
        interface: Some(InterfaceOrder { name: INTERFACE.into(), address }),
    }
}
