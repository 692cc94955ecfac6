//! qemu-storage-daemon: serves one disk over NBD or vhost-user.

use std::env;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::adapters::Transport;
use crate::guest_disk::{EXPORT, GuestDisk};
use crate::process::{AgentProcess, MachineError};

const PROGRAM: &str = "qemu-storage-daemon";
/// The block node it serves.
const NODE: &str = "served";

/// There is no qemu-storage-daemon.
#[derive(Debug, Error)]
#[error(
    "{program} was not found, which vhost-user-blk and the backing nbd need: `apt install qemu-system-common`, or set \
     VIRTBENCH_STORAGE_DAEMON to its path"
)]
pub struct NoStorageDaemon {
    program: String,
}

/// Finds the daemon: `$VIRTBENCH_STORAGE_DAEMON`, else on the path.
///
/// # Errors
/// It is not there.
pub fn find_storage_daemon() -> Result<PathBuf, NoStorageDaemon> {
    let program = env::var("VIRTBENCH_STORAGE_DAEMON").unwrap_or_else(|_| PROGRAM.to_owned());
    which::which(&program).map_err(|_| NoStorageDaemon { program })
}

/// A running daemon that serves one disk to one client. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct StorageDaemon {
    process: AgentProcess,
    command_line: Vec<String>,
}

impl StorageDaemon {
    /// Starts it for a guest of so many processors; also returns the connection that its client is to inherit.
    pub(crate) fn start(disk: &GuestDisk, vcpus: u32) -> Result<(Self, OwnedFd), MachineError> {
        let (listener, client) = listener_with_client().map_err(failed)?;
        Ok((Self::serve(disk, vcpus, listener)?, client))
    }

    /// The same for a client that connects to a socket at `path`, which is made.
    pub(crate) fn start_at(disk: &GuestDisk, vcpus: u32, path: &Path) -> Result<Self, MachineError> {
        Self::serve(disk, vcpus, UnixListener::bind(path).map_err(failed)?.into())
    }

    fn serve(disk: &GuestDisk, vcpus: u32, listener: OwnedFd) -> Result<Self, MachineError> {
        let program = find_storage_daemon().map_err(|error| failed(io::Error::other(error)))?;
        let mut arguments = disk.block_arguments(NODE);
        let settings = &disk.settings;
        let mut export = String::new();
        if settings.iothread == Some(true) {
            arguments.extend(["--object".to_owned(), "iothread,id=thread".to_owned()]);
            export.push_str(",iothread=thread");
        }
        if !settings.cache().acknowledges_early() {
            export.push_str(",writethrough=on");
        }
        let socket = format!("addr.type=fd,addr.str={}", listener.as_raw_fd());
        let writable = if disk.read_only { "off" } else { "on" };
        let common = format!("id=export,node-name={NODE},writable={writable}");
        match disk.adapter.transport {
            Transport::Qemu => arguments.extend([
                "--nbd-server".to_owned(),
                socket,
                "--export".to_owned(),
                format!("type=nbd,{common},name={EXPORT}{export}"),
            ]),
            Transport::VhostUser => {
                // QEMU asks for a queue for each processor, as it does of its own virtio disks; the daemon would
                // offer one.
                export.push_str(&format!(",num-queues={}", settings.queues.unwrap_or(vcpus)));
                arguments.extend([
                    "--export".to_owned(),
                    format!("type=vhost-user-blk,{common},{socket}{export}"),
                ]);
            }
        }
        let mut command = Command::new(&program);
        command.args(&arguments);
        let process = AgentProcess::spawn(command, vec![listener], "qemu-storage-daemon")?;
        tracing::info!(process = process.id(), disk = %disk.path.display(), "a server of a guest's disk started");
        let command_line = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments).collect();
        Ok(Self { process, command_line })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// Whether it still runs; if not, why.
    pub(crate) fn check(&mut self) -> Result<(), MachineError> {
        self.process.check()
    }
}

fn failed(source: io::Error) -> MachineError {
    MachineError::Start { program: PROGRAM.into(), source }
}

/// A socket that is listened on and a connection to it. Its name is gone when this returns, so that
/// no one else can connect, and nothing is left to clean up.
fn listener_with_client() -> io::Result<(OwnedFd, OwnedFd)> {
    let directory = tempfile::TempDir::new()?;
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let client = UnixStream::connect(&path)?;
    fs::remove_file(&path)?;
    Ok((listener.into(), client.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_daemon_is_named_with_what_mends_it() {
        let message = NoStorageDaemon { program: "/x".into() }.to_string();
        assert!(message.contains("apt install") && message.contains("vhost-user-blk"), "{message}");
    }

    #[test]
    fn client_and_listener_meet() {
        let (listener, _client) = listener_with_client().unwrap();
        UnixListener::from(listener).accept().unwrap();
    }
}
