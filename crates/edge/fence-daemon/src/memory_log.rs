//! Where a cache's log in memory lies: a file in tmpfs, mapped. A kill of the daemon leaves it, a power failure does not.
//!
//! Its name is the cache's identity, its epoch the kernel's boot. Its room is allocated when it is made, so that storing an
//! entry can never fail. A user who may write it decides what the cache holds, so it must be this user's own, or root's.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::label::MemoryPlace;
use rustix::fs::{FallocateFlags, fallocate};
use thiserror::Error;
use virtbench_fence::cache::{MemoryLog, RecoveryError, identity, layout};
use vm_memory::FileOffset;
use vm_memory::mmap::MmapRegion;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const WORD_BYTES: usize = size_of::<u64>();

/// Why a cache has no log in memory.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum MemoryLogError {
    /// The file cannot be used.
    #[error("{path}: {action}: {source}: cache.memory names a folder in tmpfs where it can be", path = path.display())]
    Io {
        path: PathBuf,
        /// What failed.
        action: &'static str,
        source: io::Error,
    },
    /// Another user could have written it.
    #[error(
        "{path} belongs to user {owner}: serve the cache as that user, who may have been answered what is in it; \
         or remove it", path = path.display()
    )]
    Owner {
        path: PathBuf,
        /// The user that it belongs to.
        owner: u32,
    },
    /// It was made for something else.
    #[error(
        "{path} has {is} bytes, the log of this cache has {needs}: it is another version's; remove it to give up what was \
         answered and not flushed", path = path.display()
    )]
    Size {
        path: PathBuf,
        /// Its size.
        is: u64,
        /// What it should be.
        needs: u64,
    },
    /// It is elsewhere.
    #[error(
        "{path} has what the last daemon answered and had not flushed: serve it with cache.memory = {folder:?} once, or move \
         that file to the folder that is configured; or remove it to give that up", path = path.display()
    )]
    Elsewhere {
        path: PathBuf,
        /// The folder that it is in.
        folder: PathBuf,
    },
    /// There is no cache.
    #[error(transparent)]
    Cache(#[from] RecoveryError),
}

/// A log that is mapped, and where.
pub(crate) struct Mapped {
    pub(crate) log: MemoryLog,
    path: PathBuf,
}

/// The log of the cache that is served; another one once the cache is. Clones are the same.
#[derive(Clone)]
pub(crate) struct Kept(Arc<Mutex<Option<Mapped>>>);

impl Kept {
    pub(crate) fn new(mapped: Option<Mapped>) -> Self {
        Self(Arc::new(Mutex::new(mapped)))
    }

    fn mapped(&self) -> MutexGuard<'_, Option<Mapped>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self) -> Option<MemoryLog> {
        self.mapped().as_ref().map(|mapped| mapped.log.clone())
    }

    /// The one before has nothing that is needed, and its name is gone.
    pub(crate) fn replace(&self, mapped: Mapped) {
        *self.mapped() = Some(mapped);
    }

    /// As [`Mapped::close`].
    pub(crate) fn close(&self) {
        self.mapped().take().into_iter().for_each(Mapped::close);
    }
}

struct Words(MmapRegion);

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: mapped readable and writable at a page's beginning as long as `self` lives, and accessed by atomics alone.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.size() / WORD_BYTES) }
    }
}

impl Mapped {
    /// The log of the cache with these superblocks, made if there is none yet. The cache's lock is held.
    ///
    /// # Errors
    /// The file cannot be had, or is not to be believed.
    pub(crate) fn open(folder: &Path, superblocks: &[u8]) -> Result<Self, MemoryLogError> {
        let (path, needs) = place(folder, superblocks)?;
        let fails = |action| {
            let path = path.clone();
            move |source| MemoryLogError::Io { path, action, source }
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path)
            .map_err(fails("cannot be opened"))?;
        if check(&file, &path, needs)? == 0 {
            fallocate(&file, FallocateFlags::empty(), 0, needs)
                .map_err(|error| fails("has no room")(error.into()))?;
        }
        let words = mapped(file, needs).map_err(fails("cannot be mapped"))?;
        Ok(Self { log: MemoryLog::new(Arc::new(words), boot().map_err(fails("no boot id"))?), path })
    }

    /// The log of the cache with these superblocks in this file, which is empty and has the name that [`path_of`] gives. It is believed as
    /// long as `before`.
    ///
    /// # Errors
    /// There is no room, or it cannot be mapped.
    pub(crate) fn adopt(
        file: File,
        path: PathBuf,
        superblocks: &[u8],
        before: &MemoryLog,
    ) -> Result<Self, MemoryLogError> {
        let needs = bytes(superblocks)?;
        let fails = |action| {
            let path = path.clone();
            move |source| MemoryLogError::Io { path, action, source }
        };
        fallocate(&file, FallocateFlags::empty(), 0, needs)
            .map_err(|error| fails("has no room")(error.into()))?;
        // Who offered it may have given up waiting. From here on nobody removes it.
        let inode = |facts: fs::Metadata| (facts.dev(), facts.ino());
        let named = fs::symlink_metadata(&path).map(inode).map_err(fails("has no name any more"))?;
        if named != file.metadata().map(inode).map_err(fails("cannot be examined"))? {
            return Err(fails("is another file")(io::ErrorKind::NotFound.into()));
        }
        Ok(Self {
            log: before.renewed(Arc::new(mapped(file, needs).map_err(fails("cannot be mapped"))?)),
            path,
        })
    }

    /// The cache is not served any more: the file goes if nothing in it is needed.
    pub(crate) fn close(self) {
        if self.log.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn mapped(file: File, bytes: u64) -> io::Result<Words> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    MmapRegion::from_file(FileOffset::new(file, 0), len).map(Words).map_err(io::Error::other)
}

/// A copy of what a killed daemon has left of the cache with these superblocks.
///
/// # Errors
/// It is there and cannot be read.
pub(crate) fn left(folder: &Path, superblocks: &[u8]) -> Result<Option<MemoryLog>, MemoryLogError> {
    let (path, needs) = place(folder, superblocks)?;
    let fails = |action| {
        let path = path.clone();
        move |source| MemoryLogError::Io { path, action, source }
    };
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(fails("cannot be opened"))?,
    };
    if check(&file, &path, needs)? == 0 {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(needs).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(fails("cannot be read"))?;
    let words: Vec<AtomicU64> =
        bytes.as_chunks().0.iter().map(|word| AtomicU64::new(u64::from_ne_bytes(*word))).collect();
    Ok(Some(MemoryLog::new(Arc::new(words), boot().map_err(fails("no boot id"))?)))
}

/// The folder of a log, for the label; none if it cannot be named.
pub(crate) fn place_of(folder: &Path) -> Option<MemoryPlace> {
    Some(MemoryPlace { folder: fs::canonicalize(folder).ok()?, boot: boot().ok()? })
}

/// Refuses to go on without what a daemon has left in another folder.
///
/// # Errors
/// There is something, or nobody can tell.
pub(crate) fn check_place(
    last: Option<&MemoryPlace>,
    folder: &Path,
    superblocks: &[u8],
) -> Result<(), MemoryLogError> {
    let now = place_of(folder);
    let Some(last) = last.filter(|last| now.as_ref() != Some(*last)) else { return Ok(()) };
    if now.as_ref().is_some_and(|now| now.boot != last.boot) {
        return Ok(());
    }
    match left(&last.folder, superblocks)? {
        Some(log) if !log.is_empty() => {
            let (path, _) = place(&last.folder, superblocks)?;
            Err(MemoryLogError::Elsewhere { path, folder: last.folder.clone() })
        }
        _ => Ok(()),
    }
}

/// The slow device could not be synced, of which a daemon that was killed may have left what is not stable: its clients hear of it.
///
/// # Errors
/// The log is there and cannot be used.
pub(crate) fn slow_sync_failed(folder: &Path, superblocks: &[u8]) -> Result<(), MemoryLogError> {
    let is_there = place(folder, superblocks)?.0.exists();
    if is_there {
        Mapped::open(folder, superblocks)?.log.slow_sync_failed();
    }
    Ok(())
}

/// What was left of a cache that is no more.
pub(crate) fn forget(folder: &Path, superblocks: &[u8]) {
    if let Ok((path, _)) = place(folder, superblocks) {
        let _ = fs::remove_file(path);
    }
}

/// Path and size in bytes.
fn place(folder: &Path, superblocks: &[u8]) -> Result<(PathBuf, u64), RecoveryError> {
    Ok((path_of(folder, identity(superblocks)?), bytes(superblocks)?))
}

/// Where the log of the cache with this identity is.
pub(crate) fn path_of(folder: &Path, uuid: [u8; 16]) -> PathBuf {
    folder.join(format!("virtbench-fence-{:032x}", u128::from_be_bytes(uuid)))
}

fn bytes(superblocks: &[u8]) -> Result<u64, RecoveryError> {
    let blocks: Vec<u32> = layout(superblocks)?.partitions.iter().map(|partition| partition.blocks).collect();
    Ok((MemoryLog::words(&blocks) * WORD_BYTES) as u64)
}

/// Its size, which is 0 for one that was not made to its end.
fn check(file: &File, path: &Path, needs: u64) -> Result<u64, MemoryLogError> {
    let facts = file.metadata().map_err(|source| MemoryLogError::Io {
        path: path.to_owned(),
        action: "cannot be examined",
        source,
    })?;
    let owner = facts.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(MemoryLogError::Owner { path: path.to_owned(), owner });
    }
    if facts.len() != 0 && facts.len() != needs {
        return Err(MemoryLogError::Size { path: path.to_owned(), is: facts.len(), needs });
    }
    Ok(facts.len())
}

fn boot() -> io::Result<[u64; 2]> {
    let text = fs::read_to_string(BOOT_ID)?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |at: usize| {
        let digits = digits.get(at..at + 16).ok_or(io::ErrorKind::InvalidData)?;
        u64::from_str_radix(digits, 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
    };
    Ok([half(0)?, half(16)?])
}
