//! Writing a test file before it is read, so that no read meets a hole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statvfs};

use super::guard;
use crate::buffers::Buffers;
use crate::target::error::TargetError;

/// Bytes written at once.
const CHUNK: u64 = 4 << 20;

/// Makes `path` a file of `size_bytes` unique, incompressible bytes.
///
/// It is written under another name and renamed when whole, so that a run that is killed never
/// leaves a half-written file under the name that a later run would trust. The half-written one is
/// overwritten by that later run.
pub(crate) fn make_file(
    path: &Path,
    size_bytes: u64,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Option<String>, TargetError> {
    let partial = partial_name(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&partial)
        .map_err(TargetError::io("create", path))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(TargetError::Busy(path.to_owned()));
    }
    let written =
        check_room(path, size_bytes).and_then(|()| write_all(&file, &partial, path, size_bytes, on_progress));
    if let Err(error) = written {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    let note = guard::mark(&file).err().map(|error| {
        format!("the file system cannot mark the file as virtbench's own ({error}): a later run needs --allow-overwrite")
    });
    fs::rename(&partial, path).map_err(TargetError::io("rename the finished file to", path))?;
    Ok(note)
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".virtbench-partial");
    path.with_file_name(name)
}

fn check_room(path: &Path, wanted_bytes: u64) -> Result<(), TargetError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stat = statvfs(folder)
        .map_err(io::Error::from)
        .map_err(TargetError::io("look up the free room for", path))?;
    let free_bytes = stat.f_bavail * stat.f_frsize;
    if free_bytes < wanted_bytes {
        return Err(TargetError::Full { path: path.to_owned(), wanted_bytes, free_bytes });
    }
    Ok(())
}

fn write_all(
    file: &File,
    partial: &Path,
    path: &Path,
    size_bytes: u64,
    mut on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<(), TargetError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            TargetError::Full { path: path.to_owned(), wanted_bytes: size_bytes, free_bytes: 0 }
        }
        _ => TargetError::Io { action: "write", path: path.to_owned(), source },
    };
    // Past the page cache where possible: a gigabyte of dirty pages would disturb what is measured next.
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(partial).ok();
    #[allow(clippy::cast_possible_truncation)]
    let mut buffers =
        Buffers::new(1, CHUNK as usize, size_bytes ^ u64::from(std::process::id())).map_err(failed)?;
    // Blocks are allocated beforehand where the file system can: fewer extents. Where it cannot, writing does it.
    let _ = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size_bytes.max(1));
    file.set_len(size_bytes).map_err(failed)?;
    let mut offset = 0;
    while offset < size_bytes {
        if !on_progress(offset, size_bytes) {
            return Err(TargetError::Interrupted(path.to_owned()));
        }
        #[allow(clippy::cast_possible_truncation)]
        let len = CHUNK.min(size_bytes - offset) as usize;
        buffers.renew(0, len);
        let chunk = &buffers.slot(0)[..len];
        let aligned = direct.as_ref().filter(|_| len.is_multiple_of(4096));
        aligned
            .map_or(Err(io::ErrorKind::Unsupported.into()), |direct| direct.write_all_at(chunk, offset))
            .or_else(|_| file.write_all_at(chunk, offset))
            .map_err(failed)?;
        offset += len as u64;
    }
    file.sync_all().map_err(failed)?;
    on_progress(size_bytes, size_bytes);
    Ok(())
}
