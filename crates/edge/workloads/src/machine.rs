//! What this machine says of itself: caches, memory, time taken by a hypervisor.

use std::fs;

use virtbench_units::parse_bytes;

/// Size of the last-level cache, in bytes; nothing where the kernel does not say.
pub(crate) fn last_level_cache_bytes() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size =
        |folder: &fs::DirEntry| parse_bytes(fs::read_to_string(folder.path().join("size")).ok()?.trim()).ok();
    caches.flatten().filter_map(|folder| size(&folder)).max()
}

/// Memory that can be had without swapping, in bytes.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    available_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Operations that a disk has completed since boot, reads and writes; nothing where the kernel does not say.
pub(crate) fn disk_operations(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
    let count = |place: usize| text.split_whitespace().nth(place)?.parse::<u64>().ok();
    Some(count(0)? + count(4)?)
}

/// Bytes that system calls of this process have copied, and of those that it started and waited for.
pub(crate) fn copied_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let value =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    value("rchar:")?.checked_add(value("wchar:")?)
}

/// Processor time of the kernel's own threads since boot, in nanoseconds.
pub(crate) fn kernel_threads_ns() -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ticks =
        processes.filter_map(|process| thread_ticks(&fs::read_to_string(process.path().join("stat")).ok()?));
    ticks.sum::<u64>() * tick_ns().unwrap_or(0)
}

/// Ticks of a kernel thread, from its `stat`; nothing for other processes.
fn thread_ticks(stat: &str) -> Option<u64> {
    /// `PF_KTHREAD`.
    const KERNEL_THREAD: u64 = 0x0020_0000;
    // The name, in brackets, may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let field = |place: usize| fields.get(place)?.parse::<u64>().ok();
    (field(6)? & KERNEL_THREAD != 0).then_some(field(11)? + field(12)?)
}

/// Length of a tick of the kernel's accounts.
fn tick_ns() -> Option<u64> {
    // SAFETY: sysconf reads a constant of the system and has no memory effects.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(1_000_000_000 / per_second)
}

/// Time that a hypervisor took from all processors since boot, in nanoseconds; nothing where the
/// kernel does not say.
pub(crate) fn steal_ns() -> Option<u64> {
    let ticks = stolen_ticks(&fs::read_to_string("/proc/stat").ok()?)?;
    ticks.checked_mul(tick_ns()?)
}

fn stolen_ticks(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(available_in("MemTotal:  9 kB\nMemAvailable:     1234 kB\n"), Some(1_263_616));
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1\n"), Some(88));
        let stat = "9 (jbd2/vda-8) x) S 2 0 0 0 -1 2129984 0 0 0 0 3 40 0 0 20 0 1 0 7 0 0";
        assert_eq!(thread_ticks(stat), Some(43));
        assert_eq!(thread_ticks(&stat.replace("2129984", "4194304")), None);
        assert_eq!((available_in(""), stolen_ticks("")), (None, None));
        assert!(available_memory_bytes().is_some() && steal_ns().is_some());
    }
}
