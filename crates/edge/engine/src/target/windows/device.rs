//! Whole disks, as `\\.\PhysicalDrive1` names them.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::GetLogicalDrives;
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{
    DISK_GEOMETRY, GET_LENGTH_INFORMATION, IOCTL_DISK_GET_DRIVE_GEOMETRY, IOCTL_DISK_GET_LENGTH_INFO,
    VOLUME_DISK_EXTENTS,
};

/// How the name of every whole disk begins, in small letters.
const BEGINNING: &str = r"\\.\physicaldrive";
/// Where a volume's parts lie (`winioctl.h`).
const IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS: u32 = 0x0056_0000;

/// Whether a path names a whole disk.
pub(super) fn is_device(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.to_ascii_lowercase().starts_with(BEGINNING))
}

/// A whole disk, opened for questions.
pub(super) struct Disk {
    device: File,
    number: Option<u32>,
}

impl Disk {
    /// # Errors
    /// There is none, or only an administrator may look at it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let device = OpenOptions::new().read(true).share_mode(3).open(path)?;
        let number = path.to_str().and_then(|path| path.get(BEGINNING.len()..)?.parse().ok());
        Ok(Self { device, number })
    }

    /// Its size and that of a sector, in bytes.
    ///
    /// # Errors
    /// It does not say.
    pub(super) fn size(&self) -> io::Result<(u64, u32)> {
        let length: GET_LENGTH_INFORMATION = ask(&self.device, IOCTL_DISK_GET_LENGTH_INFO)?;
        let geometry: DISK_GEOMETRY = ask(&self.device, IOCTL_DISK_GET_DRIVE_GEOMETRY)?;
        Ok((length.Length.unsigned_abs(), geometry.BytesPerSector.max(512)))
    }

    /// The volume with a drive letter that lies on it, if any does.
    pub(super) fn use_(&self) -> Option<String> {
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
