//! Files and devices of Windows.

mod device;
mod free;
mod guard;
pub(super) mod partial;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use memmap2::MmapMut;
use virtbench_record::{TargetFacts, TargetKind};
use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;
use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_NO_BUFFERING;

use super::error::TargetError;
use super::prepare::make_file;
use super::size::check_size;
use super::{Source, Target, TargetRequest};
use crate::system::Positioned;

use free::{failed, held, is_busy, when_free};
pub use guard::is_test_file;

/// Units that unbuffered I/O may have to work in, in bytes.
const UNITS: [u32; 4] = [512, 1024, 2048, 4096];

/// Opens a file or device, after what protects foreign data.
pub(super) fn open_path(
    request: &TargetRequest,
    path: &Path,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Target, TargetError> {
    if device::is_device(path) {
        return open_device(request, path);
    }
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(TargetError::Directory(path.to_owned())),
        Ok(meta) if meta.is_file() => open_file(request, path, meta.len(), on_progress),
        Ok(_) => Err(TargetError::Kind(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let size_bytes = request.size_bytes.ok_or_else(|| TargetError::Missing(path.to_owned()))?;
            let notes = make_file(path, size_bytes, on_progress)?;
            let mut target = open_unbuffered(request, TargetKind::File, None)?;
            target.notes.extend(notes);
            Ok(target)
        }
        Err(source) if is_busy(&source) => Err(held(path)),
        Err(source) => Err(TargetError::Io { action: "look up", path: path.to_owned(), source }),
    }
}

fn open_file(
    request: &TargetRequest,
    path: &Path,
    size_bytes: u64,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Target, TargetError> {
    let is_ours = is_test_file(path);
    if request.writes && !is_ours && !request.allow_overwrite {
        return Err(TargetError::Foreign(path.to_owned()));
    }
    let wanted_bytes = request.size_bytes.unwrap_or(size_bytes);
    let mut notes = Vec::new();
    if wanted_bytes > size_bytes && is_ours {
        notes = make_file(path, wanted_bytes, on_progress)?;
    } else {
        check_size(path, size_bytes, wanted_bytes)?;
    }
    let mut target = open_unbuffered(request, TargetKind::File, None)?;
    target.notes.extend(notes);
    Ok(target)
}

fn open_device(request: &TargetRequest, path: &Path) -> Result<Target, TargetError> {
    let disk = device::Disk::open(path).map_err(|source| failed("open", path, source))?;
    if let Some(use_) = disk.use_() {
        return Err(TargetError::InUse { path: path.to_owned(), use_ });
    }
    if request.writes && !request.allow_overwrite {
        return Err(TargetError::Foreign(path.to_owned()));
    }
    let (size_bytes, sector_bytes) =
        disk.size().map_err(|source| failed("find the size of", path, source))?;
    open_unbuffered(request, TargetKind::BlockDevice, Some((size_bytes, sector_bytes)))
}

/// Opens past the cache, or through it with a note where that is refused. A device's size and sector are known beforehand.
fn open_unbuffered(
    request: &TargetRequest,
    kind: TargetKind,
    device: Option<(u64, u32)>,
) -> Result<Target, TargetError> {
    let path = request.path.as_path();
    let open = |flags| open_when_free(path, request.writes, flags);
    let mut notes = Vec::new();
    let mut direct = request.direct;
    let file = match open(if direct { FILE_FLAG_NO_BUFFERING } else { 0 }) {
        Err(error) if direct && error.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => {
            direct = false;
            notes.push(format!(
                "the file system refuses FILE_FLAG_NO_BUFFERING ({error}): the cache is part of what was measured"
            ));
            open(0).map_err(|source| failed("open", path, source))?
        }
        opened => opened.map_err(|source| failed("open", path, source))?,
    };
    let size_bytes = match device {
        Some((size_bytes, _)) => size_bytes,
        None => file.metadata().map_err(TargetError::io("find the size of", path))?.len(),
    };
    check_size(path, size_bytes, request.size_bytes.unwrap_or(0))?;
    let unit_bytes = device.map_or_else(|| unit(&file), |(_, sector_bytes)| sector_bytes);
    let facts = TargetFacts {
        path: path.display().to_string(),
        kind,
        size_bytes,
        direct,
        alignment_bytes: if direct { unit_bytes } else { 1 },
    };
    Ok(Target { source: Source::File(Arc::new(file)), facts, notes, faults: None, ledger: None })
}

/// Opens, once no other program keeps everybody else out.
fn open_when_free(path: &Path, write: bool, flags: u32) -> io::Result<File> {
    when_free(|| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path))
}

/// The smallest unit in which a file, opened past the cache, really can be read. One too short to read from is taken for 4096.
fn unit(file: &File) -> u32 {
    let largest = UNITS[UNITS.len() - 1];
    let Ok(mut buffer) = MmapMut::map_anon(largest as usize) else { return largest };
    let mut is_possible = |unit: &u32| file.read_at(&mut buffer[..*unit as usize], u64::from(*unit)).is_ok();
    UNITS.into_iter().find(|unit| is_possible(unit)).unwrap_or(largest)
}
