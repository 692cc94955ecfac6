//! What an operation is for, and whether the server shows it; disks, as settings name them.

use serde_json::Value;

use crate::error::FaultKind;
use crate::inventory::{Place, Power};
use crate::session::{Call, encoded};

/// What should be seen of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Whether it runs.
    Power(Power),
    /// That it is there, and no task holds it.
    Exists,
    /// That it is not.
    Gone,
    /// Whether it has this snapshot.
    Snapshot(String, bool),
    /// What is written on it.
    Description(String),
    /// Whether it has, or will have once it is off, a disk of this name.
    Disk(&'static str, bool),
    /// That a disk lies on this storage.
    DiskOn(String, String),
    /// That a disk has at least so many MiB.
    DiskOf(String, u64),
}

impl Effect {
    /// As an error names it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Power(Power::On) => "a VM that runs",
            Self::Power(Power::Off) => "a VM that is off",
            Self::Power(Power::Suspended) => "a VM that stands still",
            Self::Exists => "a VM at its place",
            Self::Gone => "a VM's end",
            Self::Snapshot(_, true) => "a new snapshot",
            Self::Snapshot(_, false) => "a snapshot's end",
            Self::Description(_) => "a new description",
            Self::Disk(..) => "a disk attached or detached",
            Self::DiskOn(..) => "a disk on its new storage",
            Self::DiskOf(..) => "a disk of its new size",
        }
    }

    /// What is asked to see it.
    pub fn question(&self, place: &Place) -> Call {
        let vm = format!("nodes/{}/qemu/{}", encoded(&place.node), place.vmid);
        Call::get(match self {
            Self::Power(_) | Self::Exists | Self::Gone => format!("{vm}/status/current"),
            Self::Snapshot(..) => format!("{vm}/snapshot"),
            Self::Description(_) | Self::DiskOn(..) | Self::DiskOf(..) => format!("{vm}/config"),
            Self::Disk(..) => format!("{vm}/pending"),
        })
    }

    /// Whether the answer shows it.
    pub fn shows(&self, answer: &Value) -> bool {
        let entries = || answer.as_array().into_iter().flatten();
        match self {
            Self::Power(wanted) => power(answer) == *wanted,
            Self::Exists => {
                !matches!(answer["lock"].as_str(), Some("create" | "clone" | "migrate" | "rollback"))
            }
            Self::Gone => false,
            Self::Snapshot(name, wanted) => entries().any(|entry| entry["name"] == name.as_str()) == *wanted,
            // The server ends it with a line of its own.
            Self::Description(text) => {
                answer["description"].as_str().is_some_and(|found| found.trim_end() == text.trim_end())
            }
            Self::Disk(name, wanted) => {
                let entry = entries().find(|entry| entry["key"] == *name);
                let stays = entry.is_some_and(|entry| entry.get("delete").is_none());
                stays == *wanted
            }
            Self::DiskOn(name, storage) => disk(answer, name).is_some_and(|disk| disk.storage == *storage),
            Self::DiskOf(name, mib) => disk(answer, name).is_some_and(|disk| disk.mib >= *mib),
        }
    }

    /// Whether it is what is shown by a VM that is not there.
    pub fn is_shown_by(&self, fault: Option<FaultKind>) -> bool {
        *self == Self::Gone && fault == Some(FaultKind::NotFound)
    }
}

/// The disk of this name among a VM's settings.
fn disk(settings: &Value, name: &str) -> Option<Disk> {
    Disk::read(name, settings[name].as_str()?)
}

/// Whether a VM of this status runs.
pub(crate) fn power(status: &Value) -> Power {
    let held = status["lock"] == "suspended" || status["qmpstatus"] == "paused";
    match (status["status"].as_str(), held) {
        (_, true) => Power::Suspended,
        (Some("running"), false) => Power::On,
        _ => Power::Off,
    }
}

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
    fn what_a_server_answers_shows_an_effect_or_not() {
        let running = json!({"status": "running", "qmpstatus": "running"});
        let paused = json!({"status": "running", "qmpstatus": "paused"});
        let on_disk = json!({"status": "stopped", "lock": "suspended"});
        assert!(Effect::Power(Power::On).shows(&running) && !Effect::Power(Power::On).shows(&paused));
        assert!(
            Effect::Power(Power::Suspended).shows(&on_disk) && Effect::Power(Power::Off).shows(&json!({}))
        );
        assert!(Effect::Exists.shows(&running) && !Effect::Exists.shows(&json!({"lock": "clone"})));
        assert!(!Effect::Gone.shows(&running) && Effect::Gone.is_shown_by(Some(FaultKind::NotFound)));
        let snapshots = json!([{"name": "s"}, {"name": "current"}]);
        let snapshot = |name: &str, there| Effect::Snapshot(name.into(), there).shows(&snapshots);
        assert!(snapshot("s", true) && snapshot("t", false) && !snapshot("s", false));
        assert!(Effect::Description("a\nb".into()).shows(&json!({"description": "a\nb\n"})));
        let pending =
            json!([{"key": "scsi1", "pending": "local:1"}, {"key": "scsi2", "value": "x", "delete": 1}]);
        assert!(Effect::Disk("scsi1", true).shows(&pending) && Effect::Disk("scsi2", false).shows(&pending));
        assert!(Effect::Disk("scsi3", false).shows(&pending));
        let settings = json!({"scsi0": "fast:vm-1-disk-0,size=1G"});
        let on = |storage: &str| Effect::DiskOn("scsi0".into(), storage.into()).shows(&settings);
        let of = |mib| Effect::DiskOf("scsi0".into(), mib).shows(&settings);
        assert!(on("fast") && !on("slow") && of(1024) && !of(1040));
    }

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
