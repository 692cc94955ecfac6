//! The disks of a VM, and where another one fits.

use roxmltree::Node;

use crate::effect;
use crate::operation::{Disk, Slot};
use crate::properties::{self, PropertySet};
use crate::reply;

/// What is read of a VM.
pub(crate) const DEVICES: PropertySet =
    PropertySet { kind: "VirtualMachine", paths: &["config.hardware.device"] };
/// Places of a SCSI controller; its own is the eighth.
const UNITS: i32 = 16;
const OWN_UNIT: i32 = 7;

/// What is read of a VM to know what it has.
pub(crate) const HARDWARE: PropertySet =
    PropertySet { kind: "VirtualMachine", paths: &["config.hardware.memoryMB", "config.hardware.device"] };

/// What a VM has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Its disks, each with the file that has its bytes.
    pub disks: Vec<(Disk, String)>,
}

impl Hardware {
    pub(crate) fn read(object: Node<'_, '_>) -> Result<Self, String> {
        let mut found = Self::default();
        for (path, value) in properties::values(object) {
            if path == "config.hardware.memoryMB" {
                let text = value.text().map_or("", str::trim);
                found.memory_mib = text.parse().map_err(|_| format!("a VM has {text:?} MiB of memory"))?;
                continue;
            }
            let file = |key: i32| {
                let disk = reply::children(value, "VirtualDevice")
                    .find(|device| reply::text(*device, "key") == Some(key.to_string().as_str()))?;
                reply::text(reply::child(disk, "backing")?, "fileName").map(str::to_owned)
            };
            let disks = devices_in(value).disks.into_iter();
            found.disks = disks.map(|disk| (disk, file(disk.key).unwrap_or_default())).collect();
        }
        Ok(found)
    }
}

/// Disks and a free slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Devices {
    pub disks: Vec<Disk>,
    pub slot: Option<Slot>,
}

/// Reads the devices of a VM.
pub(crate) fn read(object: Node<'_, '_>) -> Result<Devices, String> {
    let (_, devices) = properties::values(object).next().ok_or("a VM has no devices")?;
    Ok(devices_in(devices))
}

fn devices_in(devices: Node<'_, '_>) -> Devices {
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
    found
}
