//! An appliance in a guest of User Mode Linux.

use std::sync::Arc;

use virtbench_agent::protocol::appliance::{AddressOrder, MountOrder};

use super::error::ApplianceError;
use super::guest::note_of_second_boot;
use super::mount_order::{DeviceNames, mount_order};
use super::network::{Network, NetworkNamespace};
use super::spec::{ApplianceSpec, UmlPlace};
use crate::guest_network::PortKind;
use crate::uml::{UML_INTERFACE, UmlConfig, UmlDisk, UmlGuest, UmlInterface, uml_processor};

/// The network of a guest that was to have QEMU's own: User Mode Linux has none, so it gets a namespace for itself.
///
/// # Errors
/// Root is needed.
pub(super) fn own_network() -> Result<Network, ApplianceError> {
    NetworkNamespace::new().map(Network::Namespace)
}

/// Boots a guest; returns it with what it is to mount, and with what is to be noted. A boot that hangs or panics is repeated once.
pub(super) fn boot(
    spec: &ApplianceSpec,
    place: &UmlPlace,
) -> Result<(UmlGuest, MountOrder, Vec<String>), ApplianceError> {
    let Network::Namespace(namespace) = &spec.network else {
        return Err(ApplianceError::Spec {
            name: spec.name.clone(),
            why: "it has no network: a defect".into(),
        });
    };
    let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
    let tap = Arc::new(namespace.plain_tap()?);
    let note = format!("{}: its network is a packet socket: there is no tap device for this user", spec.name);
    let mut notes: Vec<String> = (tap.kind == PortKind::Packet).then_some(note).into_iter().collect();
    let address = AddressOrder::Fixed { address: tap.address.octets(), prefix: tap.prefix };
    let cables = spec.tiers.cables.iter().cloned().map(UmlInterface::Cable);
    let root = UmlDisk::new(place.disk, spec.root.clone()).read_only();
    let data = spec.data.iter().map(|data| UmlDisk::new(place.disk, data.clone()));
    let config = UmlConfig {
        memory_bytes: spec.memory_bytes,
        disks: [root].into_iter().chain(data).collect(),
        interfaces: [UmlInterface::Tap(tap)].into_iter().chain(cables).collect(),
        boot_limit: place.boot_limit,
        processor: uml_processor(&spec.processors),
    };
    let guest = UmlGuest::boot(&place.image, &config)
        .or_else(|error| {
            notes.push(note_of_second_boot(&spec.name, error)?);
            UmlGuest::boot(&place.image, &config)
        })
        .map_err(failed)?;
    let prefix = place.disk.disk_prefix();
    let names = DeviceNames { root: prefix, data: prefix, interface: UML_INTERFACE };
    Ok((guest, mount_order(spec, names, address), notes))
}
