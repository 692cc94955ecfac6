//! Disks of VMs, as their settings name them.

use serde_json::Value;

/// Controllers, in the order in which the server looks for a VM's first disk.
const CONTROLLERS: [&str; 4] = ["ide", "scsi", "virtio", "sata"];
const MIB: u64 = 1 << 20;

/// A disk of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its place at the VM, such as `scsi0`.
    pub name: String,
    /// The storage that it lies on.
    pub storage: String,
    /// Its size in MiB, rounded down.
    pub mib: u64,
}

impl Disk {
    /// The first of a VM's settings that is no CD-ROM; nothing where there is none of which storage and size are told.
    pub(crate) fn first(settings: &Value) -> Option<Self> {
        let mut all: Vec<((usize, u32), Self)> = settings
            .as_object()?
            .iter()
            .filter_map(|(name, value)| Some((place(name)?, Self::read(name, value.as_str()?)?)))
            .collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().next().map(|(_, disk)| disk)
    }

    /// Reads `local-lvm:vm-100-disk-0,iothread=1,size=4G`.
    pub(crate) fn read(name: &str, value: &str) -> Option<Self> {
        let mut parts = value.split(',');
        let (storage, _) = parts.next()?.split_once(':')?;
        if value.split(',').any(|part| part == "media=cdrom") {
            return None;
        }
        let size = parts.find_map(|part| part.strip_prefix("size="))?;
        Some(Self { name: name.to_owned(), storage: storage.to_owned(), mib: mib(size)? })
    }
}

/// Where a disk of this name stands among all; nothing for what is no disk, such as `scsihw`.
fn place(name: &str) -> Option<(usize, u32)> {
    CONTROLLERS.iter().enumerate().find_map(|(index, controller)| {
        let number = name.strip_prefix(controller)?.parse().ok()?;
        Some((index, number))
    })
}

/// `4G`, `4194304K` or bytes, in MiB.
fn mib(size: &str) -> Option<u64> {
    let (digits, unit) = match size.char_indices().find(|(_, letter)| letter.is_ascii_alphabetic()) {
        Some((at, _)) => size.split_at(at),
        None => (size, ""),
    };
    let bytes = match unit {
        "" => 1.0,
        "K" => 1024.0,
        "M" => MIB as f64,
        "G" => (MIB << 10) as f64,
        "T" => (MIB << 20) as f64,
        _ => return None,
    };
    let value: f64 = digits.parse().ok()?;
    // A size that a disk can have is far below what is exact in a float.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and rounded down"
    )]
    (value >= 0.0).then(|| (value * bytes / MIB as f64) as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_disk_is_found_with_its_storage_and_size() {
        let settings = json!({
            "scsihw": "virtio-scsi-single", "ide2": "local:iso/a.iso,media=cdrom,size=4M",
            "scsi1": "b:vm-1-disk-1,size=512M", "scsi0": "a:vm-1-disk-0,iothread=1,size=4G",
        });
        let first = Disk { name: "scsi0".into(), storage: "a".into(), mib: 4096 };
        assert_eq!(Disk::first(&settings), Some(first));
        assert_eq!(Disk::first(&json!({"scsihw": "x", "ide2": "none,media=cdrom"})), None);
        let size = |text: &str| Disk::read("scsi0", &format!("a:b,size={text}")).map(|disk| disk.mib);
        assert_eq!((size("1.5G"), size("2048K"), size("1048576")), (Some(1536), Some(2), Some(1)));
        assert_eq!((size("x"), size("-1G"), Disk::read("scsi0", "a:b")), (None, None, None));
    }
}
