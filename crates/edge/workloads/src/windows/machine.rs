//! What this machine says of itself: caches, memory.

use windows_sys::Win32::System::SystemInformation::{
    CACHE_RELATIONSHIP, GetLogicalProcessorInformationEx, GlobalMemoryStatusEx, MEMORYSTATUSEX,
    RelationCache, SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX,
};

/// The longest description of caches that is read, in bytes.
const LONGEST: usize = 1 << 16;

/// Size of the last-level cache, in bytes; nothing where the system does not say.
pub(crate) fn last_level_cache_bytes() -> Option<u64> {
    let mut answer = vec![0_u64; LONGEST / 8];
    let mut bytes = u32::try_from(LONGEST).ok()?;
    // SAFETY: the buffer is aligned for the struct, and has as many bytes as it is said to have.
    let is_known = unsafe {
        GetLogicalProcessorInformationEx(RelationCache, answer.as_mut_ptr().cast(), &raw mut bytes)
    };
    if is_known == 0 {
        return None;
    }
    let (mut at, mut largest) = (0, None);
    while at + size_of::<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX>() <= bytes as usize {
        // SAFETY: the answer holds so many bytes, and each description says where the next one begins; words are aligned to 8 bytes.
        let one: SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX =
            unsafe { std::ptr::read_unaligned(answer.as_ptr().cast::<u8>().add(at).cast()) };
        // SAFETY: only descriptions of caches were asked for.
        let cache: CACHE_RELATIONSHIP = unsafe { one.Anonymous.Cache };
        largest = largest.max(Some(u64::from(cache.CacheSize)));
        if one.Size == 0 {
            break;
        }
        at += one.Size as usize;
    }
    largest
}

/// Memory that can be had without paging, in bytes.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    // SAFETY: the struct is of numbers, for which zero is valid.
    let mut memory: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
    memory.dwLength = u32::try_from(size_of::<MEMORYSTATUSEX>()).ok()?;
    // SAFETY: the struct says its own length.
    (unsafe { GlobalMemoryStatusEx(&raw mut memory) } != 0).then_some(memory.ullAvailPhys)
}

/// Bytes that system calls of this process have copied: Windows does not count them.
pub(crate) fn copied_bytes() -> Option<u64> {
    None
}

/// Time that a hypervisor took from all processors: Windows does not know.
pub(crate) fn steal_ns() -> Option<u64> {
    None
}

/// Operations that a disk of our own has completed: there is none on Windows.
pub(crate) fn disk_operations(_name: &str) -> Option<u64> {
    None
}
