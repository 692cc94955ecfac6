//! The storage under a folder, as Windows describes it.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use virtbench_record::DiskFacts;
use windows_sys::Win32::Storage::FileSystem::{
    GetDiskFreeSpaceExW, GetVolumeInformationW, GetVolumePathNameW,
};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{
    DEVICE_SEEK_PENALTY_DESCRIPTOR, IOCTL_STORAGE_QUERY_PROPERTY, PropertyStandardQuery,
    STORAGE_DEVICE_DESCRIPTOR, STORAGE_PROPERTY_ID, STORAGE_PROPERTY_QUERY, STORAGE_WRITE_CACHE_PROPERTY,
    StorageDeviceProperty, StorageDeviceSeekPenaltyProperty, StorageDeviceWriteCacheProperty,
    WriteCacheEnabled,
};

use super::wide;

/// The longest path of a volume and the longest description of a device that are read.
const LONGEST: usize = 1024;
/// How far a device's answer may reach, in bytes.
const ANSWER_BYTES: usize = 4096;

/// Room for the caller on the volume under `path`, in bytes.
///
/// # Errors
/// The system does not say.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = wide(path.as_os_str());
    let mut free = 0;
    // SAFETY: the name ends with zero, and the one number that is asked for has a place.
    let is_known = unsafe {
        GetDiskFreeSpaceExW(path.as_ptr(), &raw mut free, std::ptr::null_mut(), std::ptr::null_mut())
    };
    if is_known == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}

/// What lies under `path`. What cannot be found out is `None`, or `unknown`.
pub(super) fn disk_facts(path: &Path) -> DiskFacts {
    let volume = std::path::absolute(path).ok().and_then(|path| volume_of(&path));
    let device = volume.as_ref().map(|volume| open_volume(volume));
    let device = device.as_ref().map(Result::as_ref);
    let ask = |property| device.and_then(Result::ok).and_then(|device| query(device, property).ok());
    DiskFacts {
        filesystem: volume.as_deref().and_then(file_system).unwrap_or_else(|| "unknown".into()),
        device: volume.as_ref().zip(device).map(|(volume, device)| {
            let answer = match device {
                Ok(device) => query(device, StorageDeviceProperty),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            named(&volume.to_string_lossy(), answer)
        }),
        rotational: ask(StorageDeviceSeekPenaltyProperty).and_then(|answer| {
            let at = std::mem::offset_of!(DEVICE_SEEK_PENALTY_DESCRIPTOR, IncursSeekPenalty);
            Some(*answer.get(at)? != 0)
        }),
        scheduler: None,
        write_cache: ask(StorageDeviceWriteCacheProperty).and_then(|answer| {
            let at = std::mem::offset_of!(STORAGE_WRITE_CACHE_PROPERTY, WriteCacheEnabled);
            let is_on = word(&answer, at)?.cast_signed() == WriteCacheEnabled;
            Some(if is_on { "write back" } else { "write through" }.to_owned())
        }),
    }
}

/// The root of the volume that holds a path, such as `C:\`.
fn volume_of(path: &Path) -> Option<OsString> {
    let path = wide(path.as_os_str());
    let mut root = [0_u16; LONGEST];
    // SAFETY: the name ends with zero, and the buffer is as long as it is said to be.
    let is_known = unsafe { GetVolumePathNameW(path.as_ptr(), root.as_mut_ptr(), LONGEST as u32) } != 0;
    is_known.then(|| text(&root))
}

fn file_system(volume: &OsStr) -> Option<String> {
    let volume = wide(volume);
    let mut name = [0_u16; 64];
    // SAFETY: the name ends with zero; what is not asked for is null, and the buffer is as long as it is said to be.
    let is_known = unsafe {
        GetVolumeInformationW(
            volume.as_ptr(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            name.as_mut_ptr(),
            64,
        )
    } != 0;
    is_known.then(|| text(&name).to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

/// The device below a volume, opened for questions only, which needs no privilege.
fn open_volume(root: &OsStr) -> io::Result<File> {
    let root = root.to_string_lossy();
    let name = root.trim_end_matches('\\');
    OpenOptions::new().access_mode(0).share_mode(7).open(format!(r"\\.\{name}"))
}

/// A device's answer to a question about one of its properties.
///
/// # Errors
/// It has no answer.
fn query(device: &File, property: STORAGE_PROPERTY_ID) -> io::Result<Vec<u8>> {
    let question = STORAGE_PROPERTY_QUERY {
        PropertyId: property,
        QueryType: PropertyStandardQuery,
        AdditionalParameters: [0],
    };
    let (mut answer, mut bytes) = (vec![0; ANSWER_BYTES], 0);
    // SAFETY: both buffers have as many bytes as they are said to have, and the call is over when it returns.
    let is_known = unsafe {
        DeviceIoControl(
            device.as_raw_handle(),
            IOCTL_STORAGE_QUERY_PROPERTY,
            (&raw const question).cast(),
            size_of::<STORAGE_PROPERTY_QUERY>() as u32,
            answer.as_mut_ptr().cast(),
            ANSWER_BYTES as u32,
            &raw mut bytes,
            std::ptr::null_mut(),
        )
    } != 0;
    answer.truncate(bytes as usize);
    if is_known { Ok(answer) } else { Err(io::Error::last_os_error()) }
}

/// The disk's model; where the system does not tell it, the volume and why that is so.
fn named(volume: &str, answer: io::Result<Vec<u8>>) -> String {
    let why = match answer.map(|answer| model(&answer)) {
        Ok(Some(model)) => return model,
        Ok(None) => "its description has no name".to_owned(),
        Err(error) => error.to_string(),
    };
    format!("{volume}, model unavailable: {why}")
}

/// Vendor and product out of a device's description.
fn model(answer: &[u8]) -> Option<String> {
    let at = |place| {
        let from = word(answer, place)? as usize;
        let bytes: Vec<u8> = answer.get(from..)?.iter().copied().take_while(|byte| *byte != 0).collect();
        Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|text| from > 0 && !text.is_empty())
    };
    let words = [
        at(std::mem::offset_of!(STORAGE_DEVICE_DESCRIPTOR, VendorIdOffset)),
        at(std::mem::offset_of!(STORAGE_DEVICE_DESCRIPTOR, ProductIdOffset)),
    ];
    let name = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(wide: &[u16]) -> OsString {
    let length = wide.iter().position(|letter| *letter == 0).unwrap_or(wide.len());
    OsString::from_wide(&wide[..length])
}
