//! The same on Windows: the processors' time, and no functions of the kernel, which no interface for programs names.

use std::collections::BTreeMap;
use std::time::Instant;

use virtbench_record::Footprint;
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

/// Whose time does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOut {
    /// Everybody's counts.
    Nobody,
    /// That of the thread that asks.
    ThisThread,
}

/// A machine that is looked at, from its beginning on.
#[derive(Debug)]
pub struct Look {
    begun: Instant,
    own: bool,
}

impl Look {
    /// [`LeaveOut::ThisThread`] leaves out the processor time of the calling thread.
    #[must_use]
    pub fn new(_sample: bool, leave_out: LeaveOut) -> Self {
        Self { begun: Instant::now(), own: leave_out == LeaveOut::Nobody }
    }

    /// Why no functions of the kernel are sampled.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        Some("Windows does not name its kernel's functions to programs")
    }

    /// What the machine has done so far, for [`between`](Self::between); nothing where it does not say.
    #[must_use]
    pub fn take(&self, copied_bytes: u64) -> Option<Footprint> {
        let own = if self.own { [0, 0] } else { thread_cpu_ns() };
        let cpu = machine_cpu_ns()?;
        Some(Footprint {
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).ok()?,
            cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(own[mode])),
            copied_bytes,
            functions: BTreeMap::new(),
        })
    }

    /// What came between two looks.
    #[must_use]
    pub fn between(&self, earlier: &Footprint, later: &Footprint) -> Footprint {
        Footprint {
            elapsed_ns: later.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            cpu_ns: [0, 1].map(|mode| later.cpu_ns[mode].saturating_sub(earlier.cpu_ns[mode])),
            copied_bytes: later.copied_bytes.saturating_sub(earlier.copied_bytes),
            functions: BTreeMap::new(),
        }
    }
}
