//! Tracefs without a place in the file system.

use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts tracefs for whoever holds the descriptor, so that a machine on which nobody mounted it is left as
/// it was. Its files are found under `/proc/self/fd/N`.
///
/// # Errors
/// Root is needed, and a kernel with tracing.
pub fn tracefs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}
