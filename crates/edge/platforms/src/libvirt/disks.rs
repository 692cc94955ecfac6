//! Disks of VMs: how they are stored, and what they are called.

use std::time::Duration;

use virtbench_libvirt::Pool;
use virtbench_record::CloneKind;

use super::xml::{Format, volume};

/// Bytes of the volumes with which it is tried whether blocks are shared.
const TRIED_BYTES: u64 = 1 << 20;
/// How long that may take.
const TRIED_WITHIN: Duration = Duration::from_secs(60);

/// How the disks of a run are made.
#[derive(Debug, Clone, Default)]
pub(super) struct Disks {
    /// Bytes of each.
    pub(super) bytes: u64,
    /// The folder of their pool on the hypervisor's machine.
    pub(super) folder: String,
    /// Where the bytes are that all begin with.
    pub(super) base: Option<String>,
    /// Ways in which clones are made.
    pub(super) ways: Vec<CloneKind>,
    /// What has the storage clone a volume.
    pub(super) command: Option<String>,
}

impl Disks {
    /// Blocks are shared between raw files alone, and what clones by itself copies a file as it is: all ways then copy the same
    /// bytes. Otherwise a disk is an overlay of what all begin with.
    pub(super) fn are_raw(&self) -> bool {
        self.ways.iter().any(|way| matches!(way, CloneKind::Reflink | CloneKind::Array))
    }

    /// Where a volume of this name will be, so that it can be listed before it is made.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The format of all but linked clones.
    pub(super) fn format(&self) -> Format {
        if self.are_raw() { Format::Raw } else { Format::Qcow2 }
    }

    /// Whether files of the pool are known to share blocks.
    pub(super) fn shares(&self) -> bool {
        self.ways.contains(&CloneKind::Reflink)
    }
}

/// The name of a VM's disk.
pub(super) fn disk_name(vm: &str, format: Format) -> String {
    format!("{vm}.{}", format.name())
}

/// Names of the volumes with which it is tried whether blocks are shared, of this label.
pub(super) fn tried_names(label: &str) -> [String; 2] {
    ["shares-from", "shares-to"].map(|name| format!("{label}-{name}.raw"))
}

/// Why a pool cannot share blocks between two files; tried with two small volumes of this label.
pub(super) fn cannot_share(pool: &Pool, label: &str) -> Option<String> {
    let made = |name: &str| volume(name, TRIED_BYTES, Format::Raw, None);
    let [from_name, to_name] = tried_names(label);
    let tried = (|| {
        let from = pool.create(&made(&from_name))?;
        let shared = pool.copy(&made(&to_name), &from, true, TRIED_WITHIN);
        from.delete()?;
        shared?.delete()
    })();
    tried.err().map(|error| {
        format!(
            "its pool cannot share blocks between two files, which --clone reflink needs ({error}): use a pool on XFS \
             (mkfs.xfs -m reflink=1) or Btrfs, or leave reflink out"
        )
    })
}
