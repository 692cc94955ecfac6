//! Why a study has no disks of the fence.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use virtbench_engine::{EngineError, TargetError};
use virtbench_fence_daemon::ServeError;
use virtbench_lab::FilesystemError;

use super::host_device::HostDeviceError;
use crate::disks::disk::DiskError;

/// Disks that cannot be had.
#[derive(Debug, Error)]
pub enum FenceError {
    /// The daemon refuses, or fails.
    #[error("the fence's daemon: {0}")]
    Serve(#[from] ServeError),
    /// What it is to serve does not fit together.
    #[error("the fence's configuration: {0}")]
    Configuration(String),
    /// A path of the configuration is not UTF-8.
    #[error("the fence's configuration: {0}")]
    Text(#[from] toml::ser::Error),
    /// It says nothing.
    #[error("the fence's daemon does not start")]
    Silent,
    /// A file of a device.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A device's file is held by another run.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A disk cannot have a file system.
    #[error(transparent)]
    Filesystem(#[from] FilesystemError),
    /// A device cannot be written, or a cache not be filled.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A disk cannot be a block device of the host.
    #[error(transparent)]
    HostDevice(#[from] HostDeviceError),
    /// The load that fills the caches.
    #[error("filling the caches: {0}")]
    Warm(#[from] EngineError),
    /// Not filled in time.
    #[error("a cache is not filled after a minute: take smaller disks with --size")]
    Slow,
}

impl FenceError {
    /// Whether it was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self, Self::Target(TargetError::Interrupted(_)))
    }

    /// Whether this host makes no block device of a disk.
    pub(crate) fn lacks_host_device(&self) -> bool {
        matches!(self, Self::HostDevice(_))
    }
}
