//! Processor time of this thread, of this process and of the machine.

use std::fs;
use std::mem::MaybeUninit;

/// User and system time of the calling thread, in nanoseconds. The kernel splits their sum by the ticks that it has seen, so that
/// what is shorter than a tick may be on either side.
#[must_use]
pub fn thread_cpu_ns() -> [u64; 2] {
    // The kernel brings a running thread's account up to date when its clock is read; getrusage alone would give what
    // stood at the last tick, nothing of what is shorter.
    let _ = thread_clock_ns();
    cpu_ns(libc::RUSAGE_THREAD)
}

/// Processor time of the calling thread, in nanoseconds, without a split.
#[must_use]
pub fn thread_clock_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: clock_gettime fills the struct it is given; zeroed is valid for it should it fail.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// CPU time of this process, in nanoseconds: user and system.
#[must_use]
pub fn process_cpu_ns() -> [u64; 2] {
    cpu_ns(libc::RUSAGE_SELF)
}

fn cpu_ns(who: libc::c_int) -> [u64; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given; zeroed is valid for it should it fail.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000)
}

/// What all processors did since boot, in nanoseconds: user code, and system code with interrupts;
/// nothing where the kernel does not say.
#[must_use]
pub fn machine_cpu_ns() -> Option<[u64; 2]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let sum =
        |places: &[usize]| places.iter().map(|place| ticks.get(*place).copied().unwrap_or(0)).sum::<u64>();
    // SAFETY: sysconf reads a constant of the system and has no memory effects.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    let ns = 1_000_000_000 / per_second;
    Some([sum(&[0, 1]) * ns, sum(&[2, 5, 6]) * ns])
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn less_than_a_tick_is_seen() {
        let seen = (0..20).filter(|_| {
            let before = thread_cpu_ns();
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(300) {
                std::hint::spin_loop();
            }
            let after = thread_cpu_ns();
            after[0] + after[1] > before[0] + before[1]
        });
        assert_eq!(seen.count(), 20);
    }
}
