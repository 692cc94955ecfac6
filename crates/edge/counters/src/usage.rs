//! Processor time of this thread and process.

use std::mem::MaybeUninit;

/// User and system time of the calling thread, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> [u64; 2] {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // The kernel brings a running thread's account up to date when its clock is read; getrusage alone would give what
    // stood at the last tick, nothing of what is shorter.
    // SAFETY: clock_gettime fills the struct it is given, which is not read.
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, now.as_mut_ptr());
    }
    cpu_ns(libc::RUSAGE_THREAD)
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
