//! Processor time of this thread and process.

use std::mem::MaybeUninit;

/// User and system time of the calling thread, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> [u64; 2] {
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
