//! A file system of FUSE that is mounted nowhere: its only file is its root, reached by a descriptor.

use std::env;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use fuser::{Config, Session, SessionACL};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use super::file::{ExportFile, MAX_REQUEST_BYTES};

/// FUSE's device, unless `$VIRTBENCH_FUSE` names another.
const DEVICE: &str = "/dev/fuse";
/// A regular file, for its owner.
const ROOT_MODE: &str = "100600";

/// A mount without a place, as long as this is there.
pub(super) struct Mount(OwnedFd);

impl Mount {
    /// A name of its root, for this process.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

fn open() -> io::Result<File> {
    let device = env::var("VIRTBENCH_FUSE").unwrap_or_else(|_| DEVICE.to_owned());
    OpenOptions::new().read(true).write(true).open(device)
}

/// Checks that there is such a thing.
pub(super) fn check() -> io::Result<()> {
    open().map(drop)
}

/// Mounts the file. The session has greeted the kernel and is to be run.
pub(super) fn mount(file: ExportFile) -> io::Result<(Session<ExportFile>, Mount)> {
    let connection = open()?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let settings = [
        ("source", "virtbench".to_owned()),
        ("fd", connection.as_raw_fd().to_string()),
        ("rootmode", ROOT_MODE.to_owned()),
        ("user_id", rustix::process::geteuid().as_raw().to_string()),
        ("group_id", rustix::process::getegid().as_raw().to_string()),
        ("max_read", MAX_REQUEST_BYTES.to_string()),
    ];
    for (name, value) in settings {
        fsconfig_set_string(&context, name, value.as_str())?;
    }
    // The loop driver's threads may be another user's.
    fsconfig_set_flag(&context, "allow_other")?;
    fsconfig_create(&context)?;
    let session = Session::from_fd(file, connection.into(), SessionACL::All, Config::default())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok((session, Mount(mount)))
}
