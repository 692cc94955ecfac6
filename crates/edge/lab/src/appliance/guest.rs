//! An appliance in a guest.

use std::sync::Arc;

use virtbench_agent::protocol::appliance::{AddressOrder, DataOrder, DiskPlace, InterfaceOrder, MountOrder};

use super::error::ApplianceError;
use super::host_names::host_names;
use super::network::Network;
use super::spec::{ApplianceSpec, GuestPlace};
use crate::adapters::DEFAULT_ADAPTER;
use crate::cable::CableEnd;
use crate::connection::ConnectionError;
use crate::guest::{Guest, GuestConfig};
use crate::guest_disk::GuestDisk;
use crate::guest_network::GuestNetwork;
use crate::io_uring_fallback::io_without_uring;
use crate::process::MachineError;

/// What the guest's kernel calls its first network interface.
const INTERFACE: &str = "eth0";

/// Boots a guest; returns it with what it is to mount, and with what is to be noted. `port` is one more to be reached. A boot that
/// hangs or panics is repeated once.
pub(crate) fn boot(
    spec: &ApplianceSpec,
    place: &GuestPlace,
    port: u16,
) -> Result<(Guest, MountOrder, Vec<String>), ApplianceError> {
    let network = match &spec.network {
        Network::User => {
            GuestNetwork::User { ports: spec.recipe.ports().into_iter().chain([port]).collect() }
        }
        Network::Namespace(namespace) => GuestNetwork::Tap(Arc::new(namespace.tap()?)),
    };
    let (mut settings, mut notes) = (place.settings.clone(), Vec::new());
    let (mut has_uring, mut is_repeated) = (true, false);
    let guest = loop {
        let config = config(spec, place, &settings, has_uring, &network);
        let error = match Guest::boot(&place.qemu, &place.image, &config) {
            Ok(guest) => break guest,
            Err(error) => error,
        };
        if let Some(note) = has_uring.then(|| io_without_uring(&error, &mut settings)).flatten() {
            (has_uring, notes) = (false, vec![format!("{}: {note}", spec.name)]);
        } else if !is_repeated && may_pass(&error) {
            is_repeated = true;
            tracing::warn!(%error, "the guest is booted a second time");
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default();
            notes.push(format!("{}: booted a second time, because {first}", spec.name));
        } else {
            return Err(ApplianceError::Machine { name: spec.name.clone(), source: error });
        }
    };
    let order = order(spec, place, &network);
    Ok((guest, order, notes))
}

/// Whether the next boot may well go better.
fn may_pass(error: &MachineError) -> bool {
    matches!(
        error,
        MachineError::Panicked { .. }
            | MachineError::Conversation { source: ConnectionError::TimedOut { .. }, .. }
    )
}

fn config(
    spec: &ApplianceSpec,
    place: &GuestPlace,
    settings: &crate::adapters::DiskSettings,
    has_uring: bool,
    network: &GuestNetwork,
) -> GuestConfig {
    let mut root = GuestDisk { read_only: true, ..GuestDisk::new(DEFAULT_ADAPTER, spec.root.clone()) };
    if !has_uring {
        root.settings.replace_io_uring();
    }
    let data = spec
        .data
        .iter()
        .map(|data| GuestDisk { settings: settings.clone(), ..GuestDisk::new(place.adapter, data.clone()) });
    GuestConfig {
        vcpus: spec.vcpus,
        memory_bytes: spec.memory_bytes,
        disks: [root].into_iter().chain(data).collect(),
        boot_limit: place.boot_limit,
        processors: spec.processors.clone(),
        network: Some(network.clone()),
        cables: spec.tiers.cables.clone(),
        screen: spec.recipe.screen,
        ..GuestConfig::new(place.accelerator)
    }
}

/// The interface at the end of a cable; the kernel numbers them in the order of QEMU's devices.
fn link((number, cable): (usize, &CableEnd)) -> InterfaceOrder {
    let (address, prefix) = (cable.address().octets(), cable.prefix());
    InterfaceOrder { name: format!("eth{number}"), address: AddressOrder::Fixed { address, prefix } }
}

fn order(spec: &ApplianceSpec, place: &GuestPlace, network: &GuestNetwork) -> MountOrder {
    let disk = |prefix: &str, index| DiskPlace::Disk { name_prefix: prefix.to_owned(), index };
    let (root, prefix) = (DEFAULT_ADAPTER.disk_prefix, place.adapter.disk_prefix);
    let (address, prefix_bits) = network.address();
    let address = AddressOrder::Fixed { address: address.octets(), prefix: prefix_bits };
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
