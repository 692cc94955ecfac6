//! An NBD export as a block device of the host, so that what limits block devices can limit it.
//!
//! ```text
//! QEMU, raw -> /dev/loopN -> a file of FUSE, without a place in any folder -> NBD -> the daemon
//! ```
//!
//! The file is served by threads of this process. Each request is answered when the daemon has answered it, however many
//! are in flight. `qemu-storage-daemon --export type=fuse` (7.2) was tried and is no substitute: under 32 requests of 10 ms
//! at once it did 1,020 a second in place of 3,200. The kernel's own NBD client would need a driver that many kernels lack.
//!
//! Nothing has to be cleaned up, also after a kill: the file system is mounted nowhere, the kernel takes the loop device
//! away with its last user, and fails what is in flight when the process that answers is gone.

mod file;
mod mount;
mod requests;
mod waiting;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use virtbench_engine::nbd::{NbdAddress, NbdError};
use virtbench_lab::{LoopCache, LoopDevice, LoopError};

use file::ExportFile;
use requests::Requests;

/// How long the kernel may take to let go of a device that nobody uses any more.
const END_LIMIT: Duration = Duration::from_secs(10);

/// No block device can be had.
#[derive(Debug, Error)]
pub enum HostDeviceError {
    /// The export.
    #[error(transparent)]
    Nbd(#[from] NbdError),
    /// The file.
    #[error(
        "{action}: {source}; a disk as a block device of the host needs root, /dev/fuse and a kernel from 5.8"
    )]
    Fuse {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The device.
    #[error(transparent)]
    Loop(#[from] LoopError),
}

/// A block device with the blocks of an export. It is gone when this and its users are.
#[derive(Debug)]
pub(super) struct HostDevice {
    device: Option<LoopDevice>,
    /// Closes when the kernel has let go of the file.
    ended: Receiver<()>,
}

impl HostDevice {
    /// Connects to `export` of the server at the Unix socket `nbd`, and makes a device of it.
    pub(super) fn attach(nbd: &Path, export: &str) -> Result<Self, HostDeviceError> {
        let failed = |action| move |source| HostDeviceError::Fuse { action, source };
        let address = NbdAddress::unix(nbd, export);
        let file = ExportFile::new(Requests::open(&address)?);
        let (session, mount) = mount::mount(file).map_err(failed("a file system of FUSE"))?;
        let (ending, ended) = sync_channel(0);
        thread::Builder::new()
            .name("fuse".into())
            .spawn(move || {
                // It ends with an error where the connection to the kernel does, which is how it is to end.
                let _ = session.run();
                drop::<std::sync::mpsc::SyncSender<()>>(ending);
            })
            .map_err(failed("a thread"))?;
        let device = LoopDevice::attach(&mount.path(), LoopCache::Direct)?;
        Ok(Self { device: Some(device), ended })
    }

    /// Its node under `/dev`.
    pub(super) fn path(&self) -> &Path {
        self.device.as_ref().map_or(Path::new(""), LoopDevice::path)
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        self.device = None;
        // The server stays until what was written has arrived.
        let _ = self.ended.recv_timeout(END_LIMIT);
    }
}

/// Checks that such devices can be had, as far as that shows without making one.
///
/// # Errors
/// Not permitted, or no such driver.
pub fn check_host_devices() -> Result<(), HostDeviceError> {
    mount::check().map_err(|source| HostDeviceError::Fuse { action: "/dev/fuse", source })?;
    Ok(LoopDevice::check()?)
}

#[cfg(test)]
#[path = "../host_device_tests.rs"]
mod tests;
