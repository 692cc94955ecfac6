//! The disks of a VM, and where another one fits.

use roxmltree::Node;

use crate::effect;
use crate::operation::{Disk, Slot};
use crate::properties::{self, Wanted};
use crate::reply;

/// What is read of a VM.
pub(crate) const DEVICES: Wanted = Wanted { kind: "VirtualMachine", paths: &["config.hardware.device"] };
/// Places of a SCSI controller; its own is the eighth.
const UNITS: i32 = 16;
const OWN_UNIT: i32 = 7;

/// Disks and a free slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Devices {
    pub disks: Vec<Disk>,
    pub slot: Option<Slot>,
}

/// Reads the devices of a VM.
pub(crate) fn read(object: Node<'_, '_>) -> Result<Devices, String> {
    let (_, devices) = properties::values(object).next().ok_or("a VM has no devices")?;
    let number = |device: Node<'_, '_>, name: &str| {
        reply::text(device, name).and_then(|text| text.parse::<i64>().ok())
    };
    let small =
        |device: Node<'_, '_>, name: &str| number(device, name).and_then(|number| i32::try_from(number).ok());
    let mut found = Devices { disks: Vec::new(), slot: None };
    let (mut controllers, mut used) = (Vec::new(), Vec::new());
    for device in reply::children(devices, "VirtualDevice") {
        let Some(key) = small(device, "key") else { continue };
        if effect::kind(device).ends_with("SCSIController") || effect::kind(device).contains("LsiLogic") {
            controllers.push(key);
        }
        let (Some(controller), Some(unit)) = (small(device, "controllerKey"), small(device, "unitNumber"))
        else {
            continue;
        };
        let slot = Slot { controller, unit };
        used.push(slot);
        if effect::kind(device) == "VirtualDisk" {
            let kib = number(device, "capacityInKB").and_then(|kib| u64::try_from(kib).ok()).unwrap_or(0);
            found.disks.push(Disk { key, slot, kib });
        }
    }
    let slots = controllers
        .iter()
        .flat_map(|controller| (0..UNITS).map(|unit| Slot { controller: *controller, unit }));
    found.slot = slots.filter(|slot| slot.unit != OWN_UNIT).find(|slot| !used.contains(slot));
    Ok(found)
}
