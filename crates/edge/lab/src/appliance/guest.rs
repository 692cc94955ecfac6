//! An appliance in a guest.

use std::sync::Arc;

use virtbench_agent::protocol::appliance::{AddressOrder, MountOrder};

use super::error::ApplianceError;
use super::mount_order::{DeviceNames, mount_order};
use super::network::Network;
use super::spec::{ApplianceSpec, GuestPlace};
use crate::adapters::DEFAULT_ADAPTER;
use crate::connection::ConnectionError;
use crate::guest::{Guest, GuestConfig};
use crate::guest_disk::GuestDisk;
use crate::guest_network::GuestNetwork;
use crate::io_uring_fallback::io_without_uring;
use crate::process::MachineError;

/// Boots a guest; returns it with what it is to mount, and with what is to be noted. `port` is one more to be reached. A boot that
/// hangs or panics is repeated once.
pub(crate) fn boot(
    spec: &ApplianceSpec,
    place: &GuestPlace,
    port: u16,
) -> Result<(Guest, MountOrder, Vec<String>), ApplianceError> {
    let network = match &spec.network {
        Network::User => {
            let ports = spec.recipe.ports().into_iter().chain([port]).collect();
            GuestNetwork::User { ports, datagram_ports: Vec::new() }
        }
        Network::Namespace(namespace) => GuestNetwork::Tap(Arc::new(namespace.tap()?)),
    };
    let (mut settings, mut notes) = (place.settings.clone(), Vec::new());
    let (mut has_uring, mut is_repeated) = (true, false);
    let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
    let guest = loop {
        let config = config(spec, place, &settings, has_uring, &network);
        let error = match Guest::boot(&place.qemu, &place.image, &config) {
            Ok(guest) => break guest,
            Err(error) => error,
        };
        if let Some(note) = has_uring.then(|| io_without_uring(&error, &mut settings)).flatten() {
            (has_uring, notes) = (false, vec![format!("{}: {note}", spec.name)]);
        } else if is_repeated {
            return Err(failed(error));
        } else {
            is_repeated = true;
            notes.push(note_of_second_boot(&spec.name, error).map_err(failed)?);
        }
    };
    let (address, prefix) = network.address();
    let address = AddressOrder::Fixed { address: address.octets(), prefix };
    let order = mount_order(spec, DeviceNames::of_adapter(place.adapter), address);
    Ok((guest, order, notes))
}

/// What is to be noted of a guest that is booted a second time.
///
/// # Errors
/// The error itself, where the next boot would hardly go better.
pub(super) fn note_of_second_boot(name: &str, error: MachineError) -> Result<String, MachineError> {
    if !may_pass(&error) {
        return Err(error);
    }
    tracing::warn!(%error, "the guest is booted a second time");
    let first = error.to_string();
    let first = first.lines().next().unwrap_or_default();
    Ok(format!("{name}: booted a second time, because {first}"))
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
