//! The disk adapters a guest can have, and the settings each takes.

mod settings;
mod table;

use thiserror::Error;

pub use settings::{Aio, Cache, DiskSettings, SettingError};
pub use table::{ADAPTERS, Accepts, Adapter, Limits, Transport};

/// The adapter that is used when none is named.
pub const DEFAULT_ADAPTER: &Adapter = &ADAPTERS[0];

/// The adapter whose disks a server has.
#[must_use]
pub fn served_adapter() -> &'static Adapter {
    ADAPTERS.iter().find(|adapter| adapter.transport == Transport::VhostUser).unwrap_or(DEFAULT_ADAPTER)
}

/// An unknown adapter.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no adapter {name:?}{}: choose one of {}", why_not(name), names().join(", "))]
pub struct UnknownAdapter {
    /// What was asked for.
    pub name: String,
}

/// Finds an adapter by its name.
///
/// # Errors
/// There is none; the error lists those there are.
pub fn find_adapter(name: &str) -> Result<&'static Adapter, UnknownAdapter> {
    ADAPTERS
        .iter()
        .find(|adapter| adapter.name == name)
        .ok_or_else(|| UnknownAdapter { name: name.to_owned() })
}

fn names() -> Vec<&'static str> {
    ADAPTERS.iter().map(|adapter| adapter.name).collect()
}

/// What [ESX Adapters 2006] measured and cannot be had.
fn why_not(name: &str) -> &'static str {
    if name.eq_ignore_ascii_case("buslogic") {
        " (QEMU emulates no BusLogic; lsi53c895a and mptsas1068 are the LSI Logic side of that comparison)"
    } else {
        ""
    }
}

impl Adapter {
    /// QEMU's arguments for this adapter as `id`, serving the block node (or, over vhost-user, the
    /// character device) `drive`.
    pub(crate) fn arguments(&self, id: &str, drive: &str, settings: &DiskSettings) -> Vec<String> {
        let mut controller = String::new();
        let mut set = |property: &str, value: &str| controller.push_str(&format!(",{property}={value}"));
        if let (Some(property), Some(queues)) = (self.accepts.queues, settings.queues) {
            set(property, &queues.to_string());
        }
        if let (Some(property), Some(depth)) = (self.accepts.depth, settings.depth) {
            set(property, &depth.to_string());
        }
        if let Some(packed) = settings.packed {
            set("packed", if packed { "on" } else { "off" });
        }
        let mut arguments = Vec::new();
        if settings.iothread == Some(true) {
            arguments.extend(["-object".to_owned(), format!("iothread,id=thread-{id}")]);
            set("iothread", &format!("thread-{id}"));
        }
        let disk = settings.cache.map_or(String::new(), |cache| {
            format!(",write-cache={}", if cache.acknowledges_early() { "on" } else { "off" })
        });
        for device in self.devices {
            let filled = device
                .replace("{id}", id)
                .replace("{drive}", drive)
                .replace("{controller}", &controller)
                .replace("{disk}", &disk);
            arguments.extend(["-device".to_owned(), filled]);
        }
        arguments
    }

    /// The drivers of QEMU that it takes.
    pub fn drivers(&self) -> impl Iterator<Item = &'static str> {
        self.devices.iter().map(|device| device.split_once(',').map_or(*device, |(driver, _)| driver))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_complete() {
        for adapter in ADAPTERS {
            assert_eq!(find_adapter(adapter.name), Ok(adapter));
            let arguments = adapter.arguments("a0", "disk0", &DiskSettings::default()).join(" ");
            assert!(arguments.contains("=disk0") && !arguments.contains('{'), "{arguments}");
            assert!(!adapter.disk_prefix.is_empty() && !adapter.modules.is_empty());
        }
    }

    #[test]
    fn settings_become_properties() {
        let text = "queues=2,depth=64,iothread=on,cache=writethrough,packed=on";
        let settings = DiskSettings::parse(text).unwrap();
        let adapter = find_adapter("virtio-scsi").unwrap();
        assert_eq!(
            adapter.arguments("a0", "d0", &settings),
            [
                "-object",
                "iothread,id=thread-a0",
                "-device",
                "virtio-scsi-pci,id=a0,num_queues=2,cmd_per_lun=64,packed=on,iothread=thread-a0",
                "-device",
                "scsi-hd,bus=a0.0,drive=d0,write-cache=off",
            ]
        );
    }

    #[test]
    fn an_unknown_one_is_told_what_there_is() {
        let message = find_adapter("buslogic").unwrap_err().to_string();
        assert!(message.contains("QEMU emulates no BusLogic") && message.contains("mptsas1068"), "{message}");
        let message = find_adapter("punchcard").unwrap_err().to_string();
        assert!(message.contains("virtio-blk") && !message.contains("BusLogic"), "{message}");
    }
}
