//! What this machine is, as Windows says.

use std::ffi::OsStr;
use std::path::Path;

use virtbench_record::HostFacts;
use windows_sys::Win32::System::Performance::QueryPerformanceFrequency;
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, IsProcessorFeaturePresent, PF_VIRT_FIRMWARE_ENABLED,
};

use super::disk::disk_facts;
use super::wide;
use crate::cpuid::hypervisor_leaf;

/// Where the registry has edition and build.
const VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// Where it has the name of the first processor.
const PROCESSOR: &str = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0";

/// Where Wine keeps what it is set to.
const WINE: &str = "wine_get_version";

/// This machine, with the storage under `target`. What cannot be found out is `None`, or `unknown`.
#[must_use]
pub fn host_facts(target: &Path) -> HostFacts {
    // SAFETY: the calls only read numbers of the system.
    let (processors, virtualization) = unsafe {
        (
            GetActiveProcessorCount(ALL_PROCESSOR_GROUPS),
            IsProcessorFeaturePresent(PF_VIRT_FIRMWARE_ENABLED) != 0,
        )
    };
    HostFacts {
        kernel: kernel_release(),
        distribution: edition().unwrap_or_else(unknown),
        cpu: text(PROCESSOR, "ProcessorNameString").unwrap_or_else(unknown),
        processors: processors.max(1),
        memory_bytes: memory_bytes(),
        hypervisor: hypervisor_leaf(),
        virtualization: Some(virtualization),
        tuning: None,
        disk: disk_facts(target),
    }
}

/// The system's version and build.
#[must_use]
pub fn kernel_release() -> String {
    build().unwrap_or_else(unknown)
}

/// What keeps the machine's clock: the performance counter, with its frequency.
#[must_use]
pub fn clock_source() -> String {
    let mut frequency = 0_i64;
    // SAFETY: the call writes a number where it is told to.
    unsafe { QueryPerformanceFrequency(&raw mut frequency) };
    format!("performance counter of {} MHz", frequency as f64 / 1e6)
}

/// `Windows NT 10.0.20348.2031`, as far as the registry says.
fn build() -> Option<String> {
    let build = text(VERSION, "CurrentBuildNumber")?;
    let version = number(VERSION, "CurrentMajorVersionNumber")
        .zip(number(VERSION, "CurrentMinorVersionNumber"))
        .map(|(major, minor)| format!("{major}.{minor}"))
        .or_else(|| text(VERSION, "CurrentVersion"))?;
    let revision = number(VERSION, "UBR").map_or_else(String::new, |revision| format!(".{revision}"));
    Some(format!("Windows NT {version}.{build}{revision}"))
}

/// The product's name and edition; Wine says that it is Wine, as its figures are not those of Windows.
fn edition() -> Option<String> {
    let name = text(VERSION, "ProductName")?;
    let edition = text(VERSION, "EditionID").filter(|edition| !name.contains(edition.as_str()));
    let wine = wine_version().map(|version| format!("Wine {version}, as "));
    Some(format!(
        "{}{name}{}",
        wine.unwrap_or_default(),
        edition.map(|word| format!(" {word}")).unwrap_or_default()
    ))
}

/// Wine's version, where the system is Wine: its `ntdll` has a function that tells, which no Windows has.
fn wine_version() -> Option<String> {
    use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
    let name = std::ffi::CString::new(WINE).ok()?;
    // SAFETY: the names end with zero, and a function of this name takes nothing and returns a text that ends with zero.
    unsafe {
        let library = GetModuleHandleA(c"ntdll.dll".as_ptr().cast());
        let function = GetProcAddress(library, name.as_ptr().cast())?;
        let version: extern "C" fn() -> *const std::ffi::c_char = std::mem::transmute(function);
        Some(std::ffi::CStr::from_ptr(version()).to_string_lossy().into_owned())
    }
}

/// Memory of the machine, in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    memory().map_or(0, |memory| memory.ullTotalPhys)
}

/// Memory that could be used without paging, in bytes; nothing where the system does not say.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    memory().map(|memory| memory.ullAvailPhys)
}

fn memory() -> Option<MEMORYSTATUSEX> {
    // SAFETY: the struct is of numbers, for which zero is valid.
    let mut memory: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
    memory.dwLength = u32::try_from(size_of::<MEMORYSTATUSEX>()).ok()?;
    // SAFETY: the struct says its own length.
    (unsafe { GlobalMemoryStatusEx(&raw mut memory) } != 0).then_some(memory)
}

fn unknown() -> String {
    "unknown".into()
}

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
