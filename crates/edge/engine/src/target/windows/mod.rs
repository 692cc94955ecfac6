//! Files and devices of Windows.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

pub(super) mod partial;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::sync::Arc;

use memmap2::MmapMut;
use virtbench_record::{TargetFacts, TargetKind};
use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_NO_BUFFERING, GetLogicalDrives};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{
    DISK_GEOMETRY, GET_LENGTH_INFORMATION, IOCTL_DISK_GET_DRIVE_GEOMETRY, IOCTL_DISK_GET_LENGTH_INFO,
    VOLUME_DISK_EXTENTS,
};

pub use partial::is_test_file;

use self::partial::{failed, held, is_busy, when_free};
use super::error::{TargetError, check_size};
use super::prepare::make_file;
use super::{Source, Target, TargetRequest};
use crate::system::Positioned;

/// Units that unbuffered I/O may have to work in, in bytes.
const UNITS: [u32; 4] = [512, 1024, 2048, 4096];

/// Opens a file or device, after what protects foreign data.
pub(super) fn open_path(
    request: &TargetRequest,
    path: &Path,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Target, TargetError> {
    if is_device(path) {
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
    let disk = Disk::open(path).map_err(|source| failed("open", path, source))?;
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

/// How the name of every whole disk begins, in small letters.
const BEGINNING: &str = r"\\.\physicaldrive";

/// Where a volume's parts lie (`winioctl.h`).
const IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS: u32 = 0x0056_0000;

/// Whether a path names a whole disk.
fn is_device(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.to_ascii_lowercase().starts_with(BEGINNING))
}

/// A whole disk, opened for questions.
struct Disk {
    device: File,
    number: Option<u32>,
}

impl Disk {
    /// # Errors
    /// There is none, or only an administrator may look at it.
    fn open(path: &Path) -> io::Result<Self> {
        let device = OpenOptions::new().read(true).share_mode(3).open(path)?;
        let number = path.to_str().and_then(|path| path.get(BEGINNING.len()..)?.parse().ok());
        Ok(Self { device, number })
    }

    /// Its size and that of a sector, in bytes.
    ///
    /// # Errors
    /// It does not say.
    fn size(&self) -> io::Result<(u64, u32)> {
        let length: GET_LENGTH_INFORMATION = ask(&self.device, IOCTL_DISK_GET_LENGTH_INFO)?;
        let geometry: DISK_GEOMETRY = ask(&self.device, IOCTL_DISK_GET_DRIVE_GEOMETRY)?;
        Ok((length.Length.unsigned_abs(), geometry.BytesPerSector.max(512)))
    }

    /// The volume with a drive letter that lies on it, if any does.
    fn use_(&self) -> Option<String> {
        let number = self.number?;
        // SAFETY: the call takes nothing and returns a number.
        let drives = unsafe { GetLogicalDrives() };
        (b'A'..=b'Z').filter(|letter| drives >> (letter - b'A') & 1 == 1).find_map(|letter| {
            let letter = char::from(letter);
            let volume =
                OpenOptions::new().access_mode(0).share_mode(3).open(format!(r"\\.\{letter}:")).ok()?;
            let extents: VOLUME_DISK_EXTENTS = ask(&volume, IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS).ok()?;
            let lies_on_it = extents.NumberOfDiskExtents > 0 && extents.Extents[0].DiskNumber == number;
            lies_on_it.then(|| format!("drive {letter}: is on it"))
        })
    }
}

/// What a device answers to a question that needs no words.
fn ask<T>(device: &File, question: u32) -> io::Result<T> {
    let (mut answer, mut bytes) = (std::mem::MaybeUninit::<T>::zeroed(), 0);
    // SAFETY: the buffer has as many bytes as it is said to have, the types asked for are of numbers, for which zero is valid, and the call is
    // over when it returns.
    unsafe {
        let is_answered = DeviceIoControl(
            device.as_raw_handle(),
            question,
            std::ptr::null(),
            0,
            answer.as_mut_ptr().cast(),
            size_of::<T>() as u32,
            &raw mut bytes,
            std::ptr::null_mut(),
        );
        if is_answered == 0 { Err(io::Error::last_os_error()) } else { Ok(answer.assume_init()) }
    }
}
