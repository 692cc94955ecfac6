//! What of a machine a process gets for itself: a share of memory and processors, files as disks, a network.

mod limits;
mod own_network;

use std::fs::{self, File, OpenOptions};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::OFlags;
use rustix::ioctl::{self, Opcode, Setter};
use thiserror::Error;

pub use limits::{
    ControlGroup, GroupError, Hierarchy, Limits, PROCESSES, processors_in_turn, usable_processors,
};
pub(crate) use own_network::{INTERFACE, check_bridge, join_bridge};
pub use own_network::{OwnNetwork, allow_own_networks};

/// Of `linux/loop.h`.
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;

const LOOP_CONFIGURE: Opcode = 0x4C0A;

const LO_FLAGS_READ_ONLY: u32 = 1;

const LO_FLAGS_AUTOCLEAR: u32 = 4;

const LO_FLAGS_DIRECT_IO: u32 = 16;

/// How long others may still have a device that is let go of.
const DETACH_LIMIT: Duration = Duration::from_secs(5);

/// Another process may take the device between our finding it free and configuring it.
const TRIES: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    numbers: [u64; 5],
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopConfig>() == 304, "as the kernel lays it out");

/// No loop device can be had.
#[derive(Debug, Error)]
#[error(
    "no loop device over {}: {source}; run as root on a kernel with the loop driver (`modprobe loop`), or do without \
     loop devices: leave out the backing loop, or run the appliance in a guest", path.display()
)]
pub struct LoopError {
    path: PathBuf,
    source: io::Error,
}

/// How a loop device reaches its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopCache {
    /// Past the page cache.
    Direct,
    /// Through it, as a drive with a write cache: what is written is on the disk with the next flush.
    WriteBack,
}

/// A loop device over a file. The kernel takes it away when the last process
/// that has it open closes it, also if that is by a kill. Dropping it waits for that, five seconds at most.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    open: Option<File>,
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Where the kernel says what a device is over; it is not there without.
        let backing = Path::new("/sys/class/block")
            .join(self.path.file_name().unwrap_or_default())
            .join("loop/backing_file");
        let own = fs::read(&backing).ok();
        drop(self.open.take());
        let begun = Instant::now();
        // Mounts of processes that were killed go after them, and write what is left first.
        while own.is_some() && fs::read(&backing).ok() == own && begun.elapsed() < DETACH_LIMIT {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl LoopDevice {
    /// Makes one over `file`.
    ///
    /// # Errors
    /// Not permitted, no such driver, or a kernel older than 5.8.
    pub fn attach(file: &Path, cache: LoopCache) -> Result<Self, LoopError> {
        attach(file, cache, true).map_err(|source| LoopError { path: file.to_owned(), source })
    }

    /// The same of a file that is only read, as others may at the same time.
    ///
    /// # Errors
    /// As for [`attach`](Self::attach).
    pub fn attach_read_only(file: &Path, cache: LoopCache) -> Result<Self, LoopError> {
        attach(file, cache, false).map_err(|source| LoopError { path: file.to_owned(), source })
    }

    /// Checks that one can be had, as far as that shows without making one.
    ///
    /// # Errors
    /// Not permitted, or no such driver.
    pub fn check() -> Result<(), LoopError> {
        let path = PathBuf::from("/dev/loop-control");
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        opened.map(drop).map_err(|source| LoopError { path, source })
    }

    /// Its node under `/dev`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn attach(path: &Path, cache: LoopCache, writes: bool) -> io::Result<LoopDevice> {
    let (open, flags) = match cache {
        LoopCache::Direct => (OFlags::DIRECT, LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO),
        LoopCache::WriteBack => (OFlags::empty(), LO_FLAGS_AUTOCLEAR),
    };
    let open = i32::try_from(open.bits()).map_err(io::Error::other)?;
    let flags = if writes { flags } else { flags | LO_FLAGS_READ_ONLY };
    let file = OpenOptions::new().read(true).write(writes).custom_flags(open).open(path)?;
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let mut last = io::Error::other("no loop device is free");
    for _ in 0..TRIES {
        let node = PathBuf::from(format!("/dev/loop{}", free_number(&control)?));
        let device = OpenOptions::new().read(true).write(true).open(&node)?;
        match configure(&device, &file, flags) {
            Ok(()) => return Ok(LoopDevice { path: node, open: Some(device) }),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Asks for the number of a device that is free; it is the call's own result.
struct GetFree;

// SAFETY: LOOP_CTL_GET_FREE takes no argument and touches no memory of ours.
unsafe impl ioctl::Ioctl for GetFree {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut core::ffi::c_void {
        core::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        output: ioctl::IoctlOutput,
        _: *mut core::ffi::c_void,
    ) -> rustix::io::Result<i32> {
        Ok(output)
    }
}

fn free_number(control: &File) -> io::Result<i32> {
    // SAFETY: `control` is /dev/loop-control, which knows the call described above.
    Ok(unsafe { ioctl::ioctl(control.as_fd(), GetFree) }?)
}

fn configure(device: &File, file: &File, flags: u32) -> io::Result<()> {
    let info = LoopInfo {
        numbers: [0; 5],
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags,
        names: [0; 160],
        init: [0; 2],
    };
    let fd = u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
    let config = LoopConfig { fd, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, which `LoopConfig` is.
    unsafe { ioctl::ioctl(device.as_fd(), Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_while_it_is_held_and_gone_afterwards() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = directory.path().join("disk");
        File::create(&file).unwrap().set_len(1 << 20).unwrap();
        let device = LoopDevice::attach(&file, LoopCache::Direct).unwrap_or_else(|error| panic!("{error}"));
        let name = device.path().file_name().unwrap().to_owned();
        let backing = Path::new("/sys/block").join(&name).join("loop");
        assert!(fs::read_to_string(backing.join("backing_file")).unwrap().contains("disk"));
        assert_eq!(fs::read_to_string(backing.join("autoclear")).unwrap().trim(), "1");
        drop(device);
        let is_there =
            fs::read_to_string(backing.join("backing_file")).is_ok_and(|text| text.contains("disk"));
        assert!(!is_there, "the loop device is still there");
    }

    #[test]
    fn what_is_missing_is_named() {
        let message =
            LoopDevice::attach(Path::new("/nonexistent/disk"), LoopCache::Direct).unwrap_err().to_string();
        assert!(message.contains("/nonexistent/disk"), "{message}");
    }
}
