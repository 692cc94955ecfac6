//! Disks of guests of User Mode Linux.

use std::path::{Path, PathBuf};

use crate::adapters::{Adapter, served_adapter};
use crate::guest_disk::GuestDisk;

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

    /// Whether guests with this adapter of QEMU's have the same as those with the virtio disk of User Mode Linux.
    #[must_use]
    pub fn stands_for(adapter: &Adapter) -> bool {
        [Self::VirtioBlk.name(), served_adapter().name].contains(&adapter.name)
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
    /// Its blocks. What is set about QEMU's device is no matter here.
    pub blocks: GuestDisk,
}

impl UmlDisk {
    /// A raw file or block device that the guest reads and writes.
    #[must_use]
    pub fn new(kind: UmlDiskKind, path: PathBuf) -> Self {
        Self::of(kind, GuestDisk::new(served_adapter(), path))
    }

    /// One with these blocks: a server's, where one is named. The kernel would keep the native side from a file that it locks,
    /// so the run alone keeps others from it.
    #[must_use]
    pub fn of(kind: UmlDiskKind, blocks: GuestDisk) -> Self {
        Self { kind, blocks: GuestDisk { adapter: served_adapter(), shared: true, ..blocks } }
    }

    /// The same that can only be read. Then others may have the same file.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.blocks.read_only = true;
        self
    }

    /// The server of its blocks that is there already, at this socket.
    pub(super) fn server(&self) -> Option<&Path> {
        self.blocks.server.as_deref()
    }
}
