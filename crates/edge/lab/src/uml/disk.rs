//! Disks of guests of User Mode Linux.
//!
//! And the servers of those disks. A guest's kernel connects to each once: when one ends, the disk is gone for good, and requests to it wait for
//! ever. So the guest ends with it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::adapters::{Adapter, served_adapter};
use crate::guest_disk::GuestDisk;
use crate::process::MachineError;
use crate::qemu_tools::StorageDaemon;

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

/// All of one guest. Dropping them kills those that are its own.
#[derive(Debug)]
pub(super) struct DiskServers {
    own: Vec<StorageDaemon>,
    found: Vec<FoundServer>,
}

impl DiskServers {
    /// Finds those that are there already, and starts the others, each at a socket in `folder`.
    ///
    /// # Errors
    /// One is not there, or does not start.
    pub(super) fn start(disks: &[UmlDisk], folder: &Path) -> Result<Self, MachineError> {
        let (mut own, mut found) = (Vec::new(), Vec::new());
        for (number, disk) in disks.iter().enumerate().filter(|(_, disk)| disk.kind == UmlDiskKind::VirtioBlk)
        {
            match disk.server() {
                Some(socket) => found.push(FoundServer::find(socket)?),
                None => own.push(StorageDaemon::start_at(&disk.blocks, 1, &own_socket(folder, number))?),
            }
        }
        Ok(Self { own, found })
    }

    /// Process ids of its own.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.own.iter().map(StorageDaemon::id).collect()
    }

    /// Whether all still run; if not, why.
    ///
    /// # Errors
    /// One has ended.
    pub(super) fn check(&mut self) -> Result<(), MachineError> {
        self.own.iter_mut().try_for_each(StorageDaemon::check)?;
        self.found.iter().try_for_each(FoundServer::check)
    }

    /// Has the guest of this process killed as soon as one of them has ended.
    ///
    /// # Errors
    /// No thread or descriptor for it.
    pub(super) fn take_along(&self, guest: u32) -> io::Result<()> {
        let own = self.own.iter().map(|server| handle(server.id()));
        let found = self.found.iter().map(|server| server.process.try_clone());
        end_together(handle(guest)?, own.chain(found).collect::<io::Result<_>>()?)
    }
}

/// Where the disk of this number is served by a server of the guest's own.
pub(super) fn own_socket(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("disk{number}"))
}

/// A server that was there already.
#[derive(Debug)]
struct FoundServer {
    socket: PathBuf,
    process: OwnedFd,
}

impl FoundServer {
    /// The one that listens at `socket`.
    ///
    /// # Errors
    /// None does.
    fn find(socket: &Path) -> Result<Self, MachineError> {
        let find = || {
            let peer = socket_peercred(UnixStream::connect(socket)?)?;
            Ok(pidfd_open(peer.pid, PidfdFlags::empty())?)
        };
        let process = find().map_err(|error: io::Error| MachineError::Unreachable {
            why: format!(
                "no server of a guest's disk answers at {}: {error}; start it first, the fence by `virtbench fence serve`",
                socket.display()
            ),
            console: Vec::new(),
        })?;
        Ok(Self { socket: socket.to_owned(), process })
    }

    fn check(&self) -> Result<(), MachineError> {
        if !has_ended(&self.process) {
            return Ok(());
        }
        let socket = self.socket.display();
        Err(MachineError::Unreachable {
            why: format!(
                "the server of the guest's disk at {socket} ended while it was needed, and the guest with it"
            ),
            console: Vec::new(),
        })
    }
}

/// A handle of the process of this number.
fn handle(process: u32) -> io::Result<OwnedFd> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// Kills the guest as soon as one of its servers has ended.
fn end_together(guest: OwnedFd, servers: Vec<OwnedFd>) -> io::Result<()> {
    if servers.is_empty() {
        return Ok(());
    }
    let watch = move || {
        let all = servers.iter().chain([&guest]);
        let mut polled: Vec<_> = all.map(|process| PollFd::new(process, PollFlags::IN)).collect();
        while poll(&mut polled, None) == Err(Errno::INTR) {}
        if !has_ended(&guest) {
            tracing::warn!("a server of the guest's disks has ended, so the guest is killed");
            let _ = pidfd_send_signal(guest.as_fd(), Signal::KILL);
        }
    };
    thread::Builder::new().name("disk-servers".into()).spawn(watch).map(drop)
}

fn has_ended(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> (Child, OwnedFd) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let handle = handle(child.id()).unwrap();
        (child, handle)
    }

    #[test]
    fn a_guest_ends_with_the_first_of_its_servers() {
        let [(mut guest, handle), (mut one, first), (mut other, second)] = [(); 3].map(|()| sleeper());
        end_together(handle, vec![first, second]).unwrap();
        other.kill().unwrap();
        assert_eq!(guest.wait().unwrap().signal(), Some(9));
        assert!(one.try_wait().unwrap().is_none(), "no server ends with another");
        one.kill().unwrap();
        one.wait().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_server_is_found_by_its_socket_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("disk.sock");
        let missing = |socket: &Path| FoundServer::find(socket).unwrap_err().to_string();
        assert!(missing(&socket).contains("disk.sock: No such file"), "{}", missing(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        let server = FoundServer::find(&socket).unwrap();
        server.check().unwrap();
        drop(listener);
        assert!(missing(&socket).contains("refused") && missing(&socket).contains("fence serve"));
        let long = missing(&folder.path().join("x".repeat(200)));
        assert!(long.contains("path must be shorter"), "{long}");
    }
}
