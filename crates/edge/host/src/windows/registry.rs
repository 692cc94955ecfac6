//! What the registry says of the machine.

use std::ffi::OsStr;

use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};

use super::wide;

/// The longest text that is read, in characters.
const LONGEST: usize = 512;

/// A text under `HKEY_LOCAL_MACHINE`; nothing where it is not there, or is empty.
pub(super) fn text(key: &str, name: &str) -> Option<String> {
    let mut value = [0_u16; LONGEST];
    let bytes =
        read(key, name, RRF_RT_REG_SZ, value.as_mut_ptr().cast(), u32::try_from(size_of_val(&value)).ok()?)?;
    let characters = (bytes as usize / 2).min(LONGEST);
    let text = String::from_utf16_lossy(value.get(..characters)?);
    let text = text.trim_end_matches('\0').trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A number under `HKEY_LOCAL_MACHINE`.
pub(super) fn number(key: &str, name: &str) -> Option<u32> {
    let mut value = 0_u32;
    read(key, name, RRF_RT_REG_DWORD, (&raw mut value).cast(), 4)?;
    Some(value)
}

/// Reads a value into a buffer of so many bytes; how many it has.
fn read(key: &str, name: &str, kind: u32, into: *mut std::ffi::c_void, mut bytes: u32) -> Option<u32> {
    let [key, name] = [key, name].map(|text| wide(OsStr::new(text)));
    // SAFETY: both names end with zero, and the caller's buffer has as many bytes as it says.
    let result = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            name.as_ptr(),
            kind,
            std::ptr::null_mut(),
            into,
            &raw mut bytes,
        )
    };
    (result == 0).then_some(bytes)
}
