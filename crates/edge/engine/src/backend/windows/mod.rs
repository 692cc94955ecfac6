//! Operations on files and devices of Windows.

pub(super) mod blocking;
mod port;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;

use virtbench_record::TargetFacts;
use virtbench_workload::{LoadSpec, WriteSync};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_NO_BUFFERING, FILE_FLAG_WRITE_THROUGH};

pub(crate) use port::Port as Queued;

/// Opens the target once more, for one worker: a file belongs to one completion port, and says for itself how it is written. `flags` are those
/// of the way of doing I/O.
fn open_again(facts: &TargetFacts, spec: &LoadSpec, flags: u32) -> io::Result<File> {
    let mut flags = flags;
    if facts.direct {
        flags |= FILE_FLAG_NO_BUFFERING;
    }
    if spec.write_sync != WriteSync::None {
        flags |= FILE_FLAG_WRITE_THROUGH;
    }
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(&facts.path);
    match open(spec.access.writes()) {
        // Of a load that writes, the blocks may be looked at afterwards where nothing may be written any more.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(false),
        opened => opened,
    }
}

/// The number by which a failure is recorded.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().filter(|code| *code > 0).unwrap_or(crate::system::injected(libc::EIO))
}
