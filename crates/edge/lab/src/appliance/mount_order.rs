//! What an appliance stands on, as its agent is told.

use virtbench_agent::protocol::appliance::{AddressOrder, DataOrder, DiskPlace, InterfaceOrder, MountOrder};

use super::host_names::host_names;
use super::spec::ApplianceSpec;
use crate::adapters::{Adapter, DEFAULT_ADAPTER};
use crate::cable::CableEnd;

/// What the kernel of a guest calls what it finds, less a letter or number at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceNames {
    /// The disk of its root.
    pub(super) root: &'static str,
    /// The disk of its data.
    pub(super) data: &'static str,
    /// Network interfaces.
    pub(super) interface: &'static str,
}

impl DeviceNames {
    /// Those of a guest of a hypervisor, whose data are on this adapter.
    pub(super) fn of_adapter(data: &Adapter) -> Self {
        Self { root: DEFAULT_ADAPTER.disk_prefix, data: data.disk_prefix, interface: "eth" }
    }

    /// The interface at the end of a cable; the kernel numbers them in the order of the devices.
    fn link(self, (number, cable): (usize, &CableEnd)) -> InterfaceOrder {
        let (address, prefix) = (cable.address().octets(), cable.prefix());
        let address = AddressOrder::Fixed { address, prefix };
        InterfaceOrder { name: format!("{}{number}", self.interface), address }
    }
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

/// The root is the guest's first disk, the data the next.
pub(super) fn mount_order(spec: &ApplianceSpec, names: DeviceNames, address: AddressOrder) -> MountOrder {
    let disk = |prefix: &str, index| DiskPlace::Disk { name_prefix: prefix.to_owned(), index };
    let (root, prefix) = (names.root, names.data);
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: disk(root, 0),
        data: spec.recipe.data.as_ref().map(|data| DataOrder {
            disk: disk(prefix, usize::from(prefix == root)),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        links: (1..).zip(&spec.tiers.cables).map(|end| names.link(end)).collect(),
        hosts: host_names(&spec.tiers),
        screen: spec.recipe.screen,
        interface: Some(InterfaceOrder { name: format!("{}0", names.interface), address }),
    }
}
