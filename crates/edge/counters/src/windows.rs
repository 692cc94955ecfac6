//! The same on Windows: the processors' time, and no functions of the kernel, which no interface for programs names.

use std::collections::BTreeMap;

use virtbench_record::Crossings;
use windows_sys::Win32::Foundation::{FILETIME, HANDLE};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessTimes, GetSystemTimes, GetThreadTimes,
};

const ZERO: FILETIME = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };

/// A call that reads when something began and ended, and its system and user time.
type ReadTimes =
    unsafe extern "system" fn(HANDLE, *mut FILETIME, *mut FILETIME, *mut FILETIME, *mut FILETIME) -> i32;

/// User and system time of the calling thread, in nanoseconds. The system counts them by its clock's ticks of up to 16 ms.
#[must_use]
pub fn thread_cpu_ns() -> [u64; 2] {
    // SAFETY: the handle means the calling thread and need not be closed.
    times(unsafe { GetCurrentThread() }, GetThreadTimes)
}

/// Processor time of the calling thread, in nanoseconds, without a split.
#[must_use]
pub fn thread_clock_ns() -> u64 {
    thread_cpu_ns().iter().sum()
}

/// CPU time of this process, in nanoseconds: user and system.
#[must_use]
pub fn process_cpu_ns() -> [u64; 2] {
    // SAFETY: the handle means this process and need not be closed.
    times(unsafe { GetCurrentProcess() }, GetProcessTimes)
}

fn times(of: HANDLE, read: ReadTimes) -> [u64; 2] {
    let [mut created, mut exited, mut kernel, mut user] = [ZERO; 4];
    // SAFETY: the call fills the structs that it is given; should it fail they stay zero.
    unsafe { read(of, &raw mut created, &raw mut exited, &raw mut kernel, &raw mut user) };
    [ns(user), ns(kernel)]
}

/// What all processors did since boot, in nanoseconds: user code, and system code with interrupts; nothing where the system does not say.
#[must_use]
pub fn machine_cpu_ns() -> Option<[u64; 2]> {
    let [mut idle, mut kernel, mut user] = [ZERO; 3];
    // SAFETY: the call fills the structs that it is given.
    let is_known = unsafe { GetSystemTimes(&raw mut idle, &raw mut kernel, &raw mut user) } != 0;
    // The system's time includes that in which nothing ran.
    is_known.then(|| [ns(user), ns(kernel).saturating_sub(ns(idle))])
}

fn ns(time: FILETIME) -> u64 {
    (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)).saturating_mul(100)
}

/// What samples a kernel's functions: there is none.
#[derive(Debug)]
pub(crate) enum Sampler {}

impl Sampler {
    /// # Errors
    /// Always, in words.
    pub(crate) fn start() -> Result<Self, String> {
        Err("Windows does not name its kernel's functions to programs".into())
    }

    pub(crate) fn forget(&mut self) {
        match *self {}
    }

    pub(crate) fn drain(&mut self) {
        match *self {}
    }

    pub(crate) fn read(&mut self) -> BTreeMap<String, u64> {
        match *self {}
    }
}

/// What counts system calls: there is none.
#[derive(Debug)]
pub(crate) enum CrossingCounters {}

impl CrossingCounters {
    /// # Errors
    /// Always, in words.
    pub(crate) fn start() -> Result<Self, String> {
        Err("Windows does not count its system calls for programs".into())
    }

    pub(crate) fn read(&self) -> Option<Crossings> {
        match *self {}
    }
}
