//! Processor time of this thread and process.

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
