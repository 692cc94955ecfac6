//! Marks on Windows.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

use std::os::windows::ffi::OsStrExt;
use std::path::Path;

use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, WAIT_TIMEOUT};
use windows_sys::Win32::Security::Authentication::Identity::RtlGenRandom;
use windows_sys::Win32::Storage::FileSystem::{GetDriveTypeW, GetVolumePathNameW};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::{GetSystemTimeAsFileTime, GetTickCount64};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::{
    DRIVE_CDROM, DRIVE_FIXED, DRIVE_RAMDISK, DRIVE_REMOVABLE,
};

/// The longest path that the system gives for a volume, in characters.
const PATH_CHARACTERS: usize = 1024;
/// Two readings of the moment of the boot differ by less, in units of 100 ns: it is worked out from two clocks.
const BOOT_UNIT: u64 = 600_000_000;

/// What tells machines apart: the system's own id, and its name, as clones share the former.
pub(crate) fn machine_parts() -> Vec<Vec<u8>> {
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    vec![machine_id().unwrap_or_default(), name.into_bytes()]
}

/// `MachineGuid`, which is made when the system is installed.
fn machine_id() -> Option<Vec<u8>> {
    let [key, value] = ["SOFTWARE\\Microsoft\\Cryptography", "MachineGuid"].map(wide);
    let mut id = [0_u16; 64];
    let mut bytes = u32::try_from(size_of_val(&id)).ok()?;
    // SAFETY: both names end with zero, and the buffer has as many bytes as it is said to have.
    let result = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            id.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    (result == 0).then(|| id.iter().flat_map(|letter| letter.to_le_bytes()).collect())
}

/// What tells boots of a machine apart: the minute of its start. Processes are told apart by their own beginnings, so that two starts within
/// a minute do no harm.
pub(crate) fn boot_parts() -> Vec<Vec<u8>> {
    let mut now = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    // SAFETY: both calls only read clocks, the first into the struct that it is given.
    let up_ms = unsafe {
        GetSystemTimeAsFileTime(&raw mut now);
        GetTickCount64()
    };
    let begun = units(now).saturating_sub(up_ms.saturating_mul(10_000));
    vec![((begun + BOOT_UNIT / 2) / BOOT_UNIT).to_le_bytes().to_vec()]
}

/// When a process began, in units of 100 ns; nothing where there is none that runs.
pub(crate) fn began(process: u32) -> Option<u64> {
    // SAFETY: the handle is closed before this returns, and the structs are the system's to fill.
    unsafe {
        let handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, process);
        if handle.is_null() {
            return None;
        }
        let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
        let [created, exited, kernel, user] = &mut times;
        let known = GetProcessTimes(handle, created, exited, kernel, user) != 0;
        let runs = WaitForSingleObject(handle, 0) == WAIT_TIMEOUT;
        CloseHandle(handle);
        (known && runs).then(|| units(times[0]))
    }
}

/// Whether a path lies on a volume of this machine's.
pub(crate) fn is_on_this_machine(path: &Path) -> bool {
    let path: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let mut volume = [0_u16; PATH_CHARACTERS];
    // SAFETY: both names end with zero, and the buffer is as long as it is said to be.
    unsafe {
        GetVolumePathNameW(path.as_ptr(), volume.as_mut_ptr(), PATH_CHARACTERS as u32) != 0
            && [DRIVE_FIXED, DRIVE_REMOVABLE, DRIVE_RAMDISK, DRIVE_CDROM]
                .contains(&GetDriveTypeW(volume.as_ptr()))
    }
}

/// Fills a few bytes by chance; answers whether the system gave them.
pub(crate) fn fill_random(bytes: &mut [u8]) -> bool {
    let Ok(count) = u32::try_from(bytes.len()) else { return false };
    // SAFETY: the buffer has as many bytes as it is said to have.
    unsafe { RtlGenRandom(bytes.as_mut_ptr().cast(), count) }
}

fn units(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}
