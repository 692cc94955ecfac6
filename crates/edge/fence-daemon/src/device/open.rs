//! From a device's name in the configuration to a backend.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, StatxFlags};
use thiserror::Error;
use virtbench_fence::Device;

use super::{Backend, EmulatedBackend, Facts, FileBackend, NullBackend};
use crate::config::DeviceSpec;

/// How long the lock of a daemon that is ending is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why a device cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum DeviceError {
    /// It is not there, or not ours to use.
    #[error("{path}: {action}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        /// What failed.
        action: &'static str,
        source: io::Error,
    },
    /// Another fence, or the same twice.
    #[error("{path} is in use by another daemon: stop that one, or name another device", path = path.display())]
    InUse { path: PathBuf },
    /// Neither a file nor a block device.
    #[error("{path} is neither a file nor a block device", path = path.display())]
    Kind { path: PathBuf },
    /// The file is no such device.
    #[error("{path} {why}", path = path.display())]
    Model { path: PathBuf, why: String },
}

/// A device that is open and locked.
pub struct Opened {
    /// What carries out I/O.
    pub backend: Box<dyn Backend>,
    /// The file, for what is read and written before serving begins; none for a device without one.
    pub file: Option<File>,
}

/// Opens and locks the device that `spec` names. The lock lasts as long as the files returned.
///
/// # Errors
/// It is not there, cannot be opened for direct I/O, or is in use.
pub fn open(device: Device, spec: &DeviceSpec) -> Result<Opened, DeviceError> {
    match spec {
        DeviceSpec::Null { size_bytes } => {
            Ok(Opened { backend: Box::new(NullBackend::new(*size_bytes)), file: None })
        }
        DeviceSpec::File(path) | DeviceSpec::Buffered(path) => {
            let cache =
                if matches!(spec, DeviceSpec::File(_)) { PageCache::Past } else { PageCache::Through };
            let (backend, file) = open_backend(device, path, cache)?;
            Ok(Opened { backend: Box::new(backend), file: Some(file) })
        }
        DeviceSpec::Emulated(emulated) => {
            let path = &emulated.path;
            let (backend, file) = open_backend(device, path, PageCache::Past)?;
            let fits = emulated.check(backend.facts().size_bytes);
            fits.map_err(|why| DeviceError::Model { path: path.clone(), why })?;
            // This thread waits for what the model says; the kernel's usual 50 us of slack would be part of every time.
            // Without it the model is followed less closely, no more.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            Ok(Opened { backend: Box::new(EmulatedBackend::new(backend, emulated)), file: Some(file) })
        }
    }
}

/// A file's backend, and the file once more.
fn open_backend(device: Device, path: &Path, cache: PageCache) -> Result<(FileBackend, File), DeviceError> {
    let (file, facts) = open_file(path, cache)?;
    let own = file.try_clone().map_err(|source| DeviceError::Io {
        path: path.to_owned(),
        action: "cannot share the descriptor",
        source,
    })?;
    Ok((FileBackend::new(device, file, facts), own))
}

/// Which way I/O takes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCache {
    /// Around it, as direct I/O.
    Past,
    /// Through it.
    Through,
}

/// Opens a file or block device, locks it and finds out what it is.
///
/// # Errors
/// As [`open`].
pub fn open_file(path: &Path, cache: PageCache) -> Result<(File, Facts), DeviceError> {
    let fails = |action| {
        let path = path.to_owned();
        move |source: io::Error| DeviceError::Io { path, action, source }
    };
    let kind = std::fs::metadata(path).map_err(fails("cannot be used"))?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(DeviceError::Kind { path: path.to_owned() });
    }
    // O_EXCL on a block device keeps out mounts and other users of the kernel's.
    let exclusive = if kind.is_block_device() { libc::O_EXCL } else { 0 };
    let direct = if cache == PageCache::Past { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(direct | libc::O_CLOEXEC | exclusive)
        .open(path)
        .map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => DeviceError::InUse { path: path.to_owned() },
            _ => DeviceError::Io { path: path.to_owned(), action: "cannot be opened for direct I/O", source },
        })?;
    lock(&file, path, FlockOperation::NonBlockingLockExclusive)?;
    let size_bytes = size_of(&file).map_err(fails("has no size"))?;
    let facts = match cache {
        PageCache::Past => alignment(&file).map_err(fails("cannot be examined"))?,
        PageCache::Through => Facts { size_bytes: 0, block_bytes: 512, memory_alignment: 1 },
    };
    Ok((file, Facts { size_bytes, ..facts }))
}

/// Opens a file or block device for reading alone, with a lock that keeps daemons out as long as it is open.
///
/// # Errors
/// As [`open`].
pub fn open_read_only(path: &Path) -> Result<File, DeviceError> {
    let action = "cannot be opened for direct I/O";
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC)
        .open(path)
        .map_err(|source| DeviceError::Io { path: path.to_owned(), action, source })?;
    lock(&file, path, FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// What a daemon that was killed had in flight keeps its lock until the device is done with it: then nothing of it can
/// arrive any more behind what comes now.
fn lock(file: &File, path: &Path, operation: FlockOperation) -> Result<(), DeviceError> {
    let until = Instant::now() + LOCK_LIMIT;
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DeviceError::InUse { path: path.to_owned() }),
            Err(error) => {
                let (action, source) = ("cannot be locked", error.into());
                return Err(DeviceError::Io { path: path.to_owned(), action, source });
            }
        }
    }
}

fn size_of(file: &File) -> io::Result<u64> {
    use std::io::Seek;
    let mut file = file;
    file.seek(io::SeekFrom::End(0))
}

/// What direct I/O wants, as far as the kernel says (6.1 on); a page's worth of caution otherwise.
fn alignment(file: &File) -> io::Result<Facts> {
    let known = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let (block_bytes, memory_alignment) = match (known.stx_dio_offset_align, known.stx_dio_mem_align) {
        (0, _) | (_, 0) => (4096, 4096),
        (offset, memory) => (offset.max(512), memory),
    };
    Ok(Facts { size_bytes: 0, block_bytes, memory_alignment })
}
