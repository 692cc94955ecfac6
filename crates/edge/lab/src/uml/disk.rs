//! Disks of guests of User Mode Linux.

use std::path::PathBuf;

/// What a guest sees a disk through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UmlDiskKind {
    /// User Mode Linux's own block device: a thread of the guest's process reads and writes the file.
    Ubd {
        /// Whether each write is on the disk before it is answered.
        synchronous: bool,
    },
    /// A virtio block device, whose file qemu-storage-daemon reads and writes without the host's page cache, over vhost-user.
    VirtioBlk,
}

impl UmlDiskKind {
    /// All, as they are called.
    pub const ALL: [(&str, Self); 3] = [
        ("virtio-blk", Self::VirtioBlk),
        ("ubd", Self::Ubd { synchronous: false }),
        ("ubd-sync", Self::Ubd { synchronous: true }),
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, kind)| *kind == self).map_or("virtio-blk", |(name, _)| name)
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, kind)| kind)
    }

    /// The modules that a guest needs for it.
    #[must_use]
    pub fn modules(self) -> &'static [&'static str] {
        match self {
            Self::VirtioBlk => &["virtio_blk"],
            Self::Ubd { .. } => &[],
        }
    }

    /// How the guest's kernel names its disks.
    #[must_use]
    pub fn disk_prefix(self) -> &'static str {
        match self {
            Self::VirtioBlk => "vd",
            Self::Ubd { .. } => "ubd",
        }
    }

    /// Whether the host's page cache lies between the guest and the file.
    #[must_use]
    pub fn is_cached(self) -> bool {
        matches!(self, Self::Ubd { .. })
    }
}

/// A disk of a guest.
#[derive(Debug, Clone)]
pub struct UmlDisk {
    /// What it is seen through.
    pub kind: UmlDiskKind,
    /// The file or block device of this host.
    pub path: PathBuf,
    /// Whether the guest can only read it. Then others may have the same file.
    pub read_only: bool,
}

impl UmlDisk {
    /// One that the guest reads and writes.
    #[must_use]
    pub fn new(kind: UmlDiskKind, path: PathBuf) -> Self {
        Self { kind, path, read_only: false }
    }
}
