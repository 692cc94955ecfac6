//! In place of `fence` in a build without it: the same names, of which nothing can exist.

#[path = "no_fence_options.rs"]
mod options;
#[path = "fence/request.rs"]
mod request;

pub use options::FenceOptions;
pub use request::FenceRequest;

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use thiserror::Error;
use virtbench_lab::GuestDisk;

/// Disks that cannot be had.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct FenceError(Infallible);

impl FenceError {
    pub(crate) fn is_stopped(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn lacks_host_device(&self) -> bool {
        match self.0 {}
    }
}

/// Why no disk can be a block device of the host.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct HostDeviceError(Infallible);

pub(crate) fn check_host_devices() -> Result<(), HostDeviceError> {
    Ok(())
}

/// A daemon, which this build has not.
#[derive(Debug)]
pub struct FenceDisks(Infallible);

impl FenceDisks {
    pub(crate) fn prepare(
        request: &FenceRequest<'_>,
        _stop: &AtomicBool,
        _on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, FenceError> {
        match *request.options {}
    }

    pub(crate) fn disks(&self) -> &[GuestDisk] {
        match self.0 {}
    }
}
