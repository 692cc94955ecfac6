//! Trims of a part of a file: `FSCTL_FILE_LEVEL_TRIM`.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;

use virtbench_workload::LoadSpec;
use windows_sys::Win32::Foundation::{ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED};
use windows_sys::Win32::System::IO::{DeviceIoControl, OVERLAPPED};
use windows_sys::Win32::System::Ioctl::{FILE_LEVEL_TRIM, FILE_LEVEL_TRIM_RANGE, FSCTL_FILE_LEVEL_TRIM};

use crate::error::EngineError;

/// A trim of so many bytes.
pub(super) fn order(offset: u64, length: u32) -> FILE_LEVEL_TRIM {
    FILE_LEVEL_TRIM {
        Key: 0,
        NumRanges: 1,
        Ranges: [FILE_LEVEL_TRIM_RANGE { Offset: offset, Length: length.into() }],
    }
}

/// Begins a trim.
///
/// # Safety
/// `order` and `overlapped` live where they are until the trim is over; a null `overlapped` is for a file that is not overlapped.
pub(super) unsafe fn begin(
    file: &File,
    order: *const FILE_LEVEL_TRIM,
    overlapped: *mut OVERLAPPED,
) -> io::Result<()> {
    let mut bytes = 0;
    // SAFETY: the caller's.
    let is_begun = unsafe {
        DeviceIoControl(
            file.as_raw_handle(),
            FSCTL_FILE_LEVEL_TRIM,
            order.cast(),
            size_of::<FILE_LEVEL_TRIM>() as u32,
            std::ptr::null_mut(),
            0,
            &raw mut bytes,
            overlapped,
        )
    };
    if is_begun == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Trims, and waits for it.
pub(super) fn trim_now(file: &File, offset: u64, length: u32) -> io::Result<()> {
    let order = order(offset, length);
    // SAFETY: the file is not overlapped, so that the call is over when it returns.
    unsafe { begin(file, &raw const order, std::ptr::null_mut()) }
}

/// Refuses a load with trims where the file system or device has none. The question is a trim of nothing, which changes nothing and which one that
/// has trims answers or calls wrong.
///
/// # Errors
/// There are none.
pub(super) fn refuse_unavailable_trims(file: &File, spec: &LoadSpec) -> Result<(), EngineError> {
    if !spec.access.lines.iter().any(|line| line.trim_percent > 0.0) {
        return Ok(());
    }
    let question = FILE_LEVEL_TRIM { NumRanges: 0, ..order(0, 0) };
    // SAFETY: `file` is one that is not overlapped, so that the call is over when it returns.
    match unsafe { begin(file, &raw const question, std::ptr::null_mut()) } {
        Err(error)
            if [ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED]
                .map(u32::cast_signed)
                .contains(&error.raw_os_error().unwrap_or_default()) =>
        {
            Err(EngineError::Misfit(format!(
                "trims are unavailable: the file system there has no FSCTL_FILE_LEVEL_TRIM ({error}); leave them out"
            )))
        }
        _ => Ok(()),
    }
}
