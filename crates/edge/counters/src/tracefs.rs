//! The kernel's tracing, mounted for this process alone.

use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts tracefs for the holder of the descriptor. Its files are found under `/proc/self/fd/N`.
///
/// # Errors
/// It is not permitted, or the kernel has no tracing.
pub fn tracefs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}
