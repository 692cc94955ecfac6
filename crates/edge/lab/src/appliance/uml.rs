//! An appliance in a guest of User Mode Linux.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use virtbench_agent::enclosure::usable_processors;
use virtbench_agent::protocol::appliance::{AddressOrder, MountOrder};

use super::error::ApplianceError;
use super::guest::note_of_second_boot;
use super::mount_order::{DeviceNames, mount_order};
use super::network::{Network, NetworkNamespace};
use super::spec::{ApplianceSpec, UmlPlace};
use crate::uml::{UML_INTERFACE, UmlConfig, UmlDisk, UmlGuest, UmlInterface};

/// Guests that were told of no processor.
static UNHELD: AtomicUsize = AtomicUsize::new(0);

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
    let address = AddressOrder::Fixed { address: tap.address.octets(), prefix: tap.prefix };
    let cables = spec.tiers.cables.iter().cloned().map(UmlInterface::Cable);
    let root = UmlDisk::new(place.disk, spec.root.clone()).read_only();
    let data = spec.data.iter().map(|data| UmlDisk::new(place.disk, data.clone()));
    let config = UmlConfig {
        memory_bytes: spec.memory_bytes,
        disks: [root].into_iter().chain(data).collect(),
        interfaces: [UmlInterface::Tap(tap)].into_iter().chain(cables).collect(),
        boot_limit: place.boot_limit,
        processor: processor(&spec.processors),
    };
    let mut notes = Vec::new();
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

/// The processor of a guest: the first that it is held to, else each of those that this process may use in turn.
fn processor(held_to: &[usize]) -> usize {
    let in_turn = || {
        let usable = usable_processors().unwrap_or_default();
        let turn = UNHELD.fetch_add(1, Ordering::Relaxed);
        turn.checked_rem(usable.len()).and_then(|place| usable.get(place).copied()).unwrap_or_default()
    };
    held_to.first().copied().unwrap_or_else(in_turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_that_are_held_to_no_processor_take_turns() {
        let usable = usable_processors().unwrap();
        let mut taken: Vec<usize> = usable.iter().map(|_| processor(&[])).collect();
        taken.sort_unstable();
        assert_eq!((taken, processor(&[7, 8])), (usable, 7));
    }
}
