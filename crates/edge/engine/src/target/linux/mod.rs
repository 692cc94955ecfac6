//! Files and devices of Linux.

pub(super) mod partial;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use memmap2::MmapMut;
use rustix::fs::{fstatfs, seek};
use virtbench_record::{TargetFacts, TargetKind};

pub use partial::is_test_file;

use super::error::{TargetError, check_size};
use super::prepare::make_file;
use super::{Source, Target, TargetRequest};
use crate::buffers::memory_note;

/// How long a device may still be held by its last user.
const BUSY_LIMIT: Duration = Duration::from_secs(2);

/// Opens a file or device, after what protects foreign data.
pub(super) fn open_path(
    request: &TargetRequest,
    path: &Path,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Target, TargetError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(TargetError::Directory(path.to_owned())),
        Ok(meta) if meta.file_type().is_block_device() => open_device(request, meta.rdev()),
        Ok(meta) if meta.is_file() => open_file(request, on_progress),
        Ok(_) => Err(TargetError::Kind(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let size_bytes = request.size_bytes.ok_or_else(|| TargetError::Missing(path.to_owned()))?;
            let notes = make_file(path, size_bytes, on_progress)?;
            let mut target = open_direct(request, TargetKind::File, 0)?;
            target.notes.extend(notes);
            Ok(target)
        }
        Err(source) => Err(TargetError::Io { action: "look up", path: path.to_owned(), source }),
    }
}

fn open_file(
    request: &TargetRequest,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Target, TargetError> {
    let path = request.path.as_path();
    let file = File::open(path).map_err(TargetError::io("open", path))?;
    let meta = file.metadata().map_err(TargetError::io("look up", path))?;
    let ours = partial::is_ours(&file);
    if request.writes && !ours && !request.allow_overwrite {
        return Err(TargetError::Foreign(path.to_owned()));
    }
    let wanted_bytes = request.size_bytes.unwrap_or(meta.len());
    if wanted_bytes > meta.len() && ours {
        drop(file);
        make_file(path, wanted_bytes, on_progress)?;
    } else {
        check_size(path, meta.len(), wanted_bytes)?;
    }
    let mut target = open_direct(request, TargetKind::File, 0)?;
    if meta.blocks() * 512 < meta.len() && !ours && request.reads {
        target.notes.push(format!(
            "{} has holes: reads of parts that were never written do not reach the disk",
            path.display()
        ));
    }
    Ok(target)
}

fn open_device(request: &TargetRequest, device: u64) -> Result<Target, TargetError> {
    let path = request.path.as_path();
    partial::refuse_device_in_use(path, device)?;
    if request.writes && !request.allow_overwrite {
        return Err(TargetError::Foreign(path.to_owned()));
    }
    // The kernel grants O_EXCL on a device only while nobody else holds it so.
    let exclusive = if request.writes { libc::O_EXCL } else { 0 };
    open_direct(request, TargetKind::BlockDevice, exclusive)
}

/// Opens for direct I/O, or through the page cache with a note where that is refused.
fn open_direct(request: &TargetRequest, kind: TargetKind, flags: i32) -> Result<Target, TargetError> {
    let path = request.path.as_path();
    let open = |flags| open_when_free(path, request.writes, flags);
    let mut notes = Vec::new();
    let mut direct = request.direct;
    let opened = if direct { open(flags | libc::O_DIRECT) } else { open(flags) };
    let file = match opened {
        Err(error) if direct && error.raw_os_error() == Some(libc::EINVAL) => {
            direct = false;
            let file = open(flags).map_err(TargetError::io("open", path))?;
            if memory_note(path).is_none() {
                notes.push(format!(
                    "{} refuses O_DIRECT ({error}): the page cache is part of what was measured",
                    file_system_name(&file)
                ));
            }
            file
        }
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            return Err(TargetError::InUse {
                path: path.to_owned(),
                use_: "another program holds it".into(),
            });
        }
        opened => opened.map_err(TargetError::io("open", path))?,
    };
    if let Some(note) = memory_note(path).filter(|_| kind == TargetKind::File) {
        // Where it grants O_DIRECT, there is still nothing but the page cache.
        direct = false;
        notes.push(note);
    }
    let size_bytes = seek(&file, rustix::fs::SeekFrom::End(0))
        .map_err(io::Error::from)
        .map_err(TargetError::io("find the size of", path))?;
    check_size(path, size_bytes, request.size_bytes.unwrap_or(0))?;
    let facts = TargetFacts {
        path: path.display().to_string(),
        kind,
        size_bytes,
        direct,
        alignment_bytes: if direct { direct_alignment(&file) } else { 1 },
    };
    Ok(Target { source: Source::File(Arc::new(file)), facts, notes, faults: None, ledger: None })
}

/// Opens, and where a device is held exclusively, tries again for a while: the kernel takes a ring
/// that used it apart only after the process has moved on, and device managers look in now and then.
fn open_when_free(path: &Path, write: bool, flags: i32) -> io::Result<File> {
    let limit = Instant::now() + BUSY_LIMIT;
    loop {
        let opened = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < limit => {
                thread::sleep(BUSY_LIMIT / 100);
            }
            opened => return opened,
        }
    }
}

/// What kind of file system a file is on, for a message.
fn file_system_name(file: impl AsFd) -> String {
    match fstatfs(file).map(|stat| stat.f_type) {
        Ok(magic) => format!("the file system (type {magic:#x})"),
        Err(_) => "the file system".to_owned(),
    }
}

/// The sizes tried, in bytes.
const CANDIDATES: [u32; 4] = [512, 1024, 2048, 4096];

/// The smallest unit in which `file`, opened for direct I/O, really can be read. Found by reading:
/// what file systems and devices announce and what they accept has differed too often.
/// A file too short to read from is taken for 4096.
pub(crate) fn direct_alignment(file: &File) -> u32 {
    let largest = CANDIDATES[CANDIDATES.len() - 1];
    let Ok(mut buffer) = MmapMut::map_anon(largest as usize) else { return largest };
    CANDIDATES
        .into_iter()
        .find(|unit| {
            let bytes = *unit as usize;
            file.read_at(&mut buffer[..bytes], u64::from(*unit)).is_ok()
        })
        .unwrap_or(largest)
}
