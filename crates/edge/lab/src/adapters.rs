//! The disk adapters a guest can have. This table is all there is to one: a new one is a new row.

use thiserror::Error;

/// A disk adapter as QEMU emulates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// Its name on virtbench's command line.
    pub name: &'static str,
    /// What it is, for the user.
    pub summary: &'static str,
    /// The values of QEMU's `-device`, in order. `{id}` stands for the adapter, `{drive}` for what
    /// it serves; an adapter on a bus has one device for its controller and one for the disk.
    pub devices: &'static [&'static str],
    /// The drivers a guest needs, without what they depend on.
    pub modules: &'static [&'static str],
    /// How the guest's kernel names its disks.
    pub disk_prefix: &'static str,
    /// What it can do at most.
    pub limits: Limits,
}

/// What an adapter can do at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Queues.
    pub queues: u32,
    /// Requests the device takes at once; more wait inside the guest.
    pub outstanding: u32,
}

/// All adapters.
pub const ADAPTERS: &[Adapter] = &[Adapter {
    name: "virtio-blk",
    summary: "virtio block device, paravirtual",
    devices: &["virtio-blk-pci,id={id},drive={drive}"],
    modules: &["virtio_pci", "virtio_blk"],
    disk_prefix: "vd",
    // One queue per vCPU, of 256 descriptors each, is QEMU's default since 5.2.
    limits: Limits { queues: 1024, outstanding: 256 },
}];

/// The adapter that is used when none is named.
pub const DEFAULT_ADAPTER: &Adapter = &ADAPTERS[0];

/// An adapter nobody knows.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no adapter {name:?}: choose one of {}", names().join(", "))]
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

impl Adapter {
    /// QEMU's arguments for this adapter as `id`, serving the block node `drive`.
    pub(crate) fn arguments(&self, id: &str, drive: &str) -> Vec<String> {
        let filled = |device: &&str| device.replace("{id}", id).replace("{drive}", drive);
        self.devices.iter().flat_map(|device| ["-device".to_owned(), filled(device)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_complete() {
        for adapter in ADAPTERS {
            assert_eq!(find_adapter(adapter.name), Ok(adapter));
            let arguments = adapter.arguments("a0", "disk0").join(" ");
            assert!(arguments.contains("drive=disk0") && !arguments.contains('{'), "{arguments}");
            assert!(!adapter.disk_prefix.is_empty() && !adapter.modules.is_empty());
        }
    }

    #[test]
    fn an_unknown_one_is_told_what_there_is() {
        let message = find_adapter("buslogic").unwrap_err().to_string();
        assert!(message.contains("buslogic") && message.contains("virtio-blk"), "{message}");
    }
}
