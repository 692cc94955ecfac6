//! An appliance natively on a machine of the user's.

use virtbench_agent::protocol::appliance::{AddressOrder, InterfaceOrder, MountOrder};

use super::mount_order::mount_order_of_nodes;
use super::spec::ApplianceSpec;
use crate::process::MachineError;
use crate::remote::{EnclosedAppliance, SshAppliances};

/// Encloses one; returns it with what it is to mount.
pub(crate) fn start(
    spec: &ApplianceSpec,
    place: &SshAppliances,
) -> Result<(EnclosedAppliance, MountOrder), MachineError> {
    let appliance = place.enclose(&spec.parts())?;
    let enclosed = &appliance.enclosed;
    let interface = InterfaceOrder { name: enclosed.interface.clone(), address: AddressOrder::Granted };
    let order = mount_order_of_nodes(spec, &enclosed.root, enclosed.data.as_deref(), Some(interface));
    Ok((appliance, order))
}
