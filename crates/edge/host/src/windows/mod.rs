//! The same on Windows, by the system's own accounts.

mod cpu;
mod disk;
mod facts;

use windows_sys::Win32::Foundation::GetHandleInformation;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

pub use cpu::{CpuSample, Unreadable};
pub use disk::free_bytes;
pub use facts::{available_memory_bytes, clock_source, host_facts, kernel_release, memory_bytes};

/// A call that does little but cross into the kernel.
pub(crate) fn cross() -> bool {
    let mut flags = 0;
    // SAFETY: the call writes a number where it is told to.
    unsafe { GetHandleInformation(GetCurrentProcess(), &raw mut flags) != 0 }
}

/// As the system's calls want text: UTF-16 with zero at its end.
pub(crate) fn wide(text: &std::ffi::OsStr) -> Vec<u16> {
    std::os::windows::ffi::OsStrExt::encode_wide(text).chain([0]).collect()
}
