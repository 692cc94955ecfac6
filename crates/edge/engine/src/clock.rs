//! The clock that everything here is measured by.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::counter_clock::{Clocks, CounterClock};
use crate::system::now_ns;

/// Nanoseconds of the machine's monotonic clock.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    now_ns()
}

/// Sleeps until the clock shows `at_ns`, or not at all if it already does.
pub(crate) fn sleep_until(at_ns: u64) {
    let now = monotonic_ns();
    if at_ns > now {
        std::thread::sleep(std::time::Duration::from_nanos(at_ns - now));
    }
}

/// The monotonic clock as one worker reads it for its operations.
#[derive(Debug)]
pub(crate) enum WorkerClock {
    /// By asking the kernel. Where the vDSO answers, nothing is cheaper and as exact.
    Kernel,
    /// By the processor's counter, where asking the kernel is a system call.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Counter(Box<CounterClock<Processor>>),
}

impl WorkerClock {
    /// The clock for a worker of this machine.
    pub(crate) fn of_this_machine() -> Self {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if crate::system::is_user_mode_linux() && has_steady_counter() {
            return Self::Counter(Box::new(CounterClock::new(Processor)));
        }
        Self::Kernel
    }

    /// Nanoseconds of the monotonic clock; never less than before.
    #[inline]
    pub(crate) fn now_ns(&mut self) -> u64 {
        match self {
            Self::Kernel => monotonic_ns(),
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            Self::Counter(clock) => clock.now_ns(),
        }
    }

    /// What a reader of the results should know of the clock.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Kernel => None,
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            Self::Counter(clock) => clock.is_refuted().then(|| {
                "the processor's counter and the kernel's clock went apart: the clock was read by a system call from then on, \
                 which each operation paid"
                    .to_owned()
            }),
        }
    }
}

/// This processor's counter and this kernel's clock.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[derive(Debug)]
pub(crate) struct Processor;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl Clocks for Processor {
    #[inline]
    fn cycles(&self) -> u64 {
        // SAFETY: reading the counter touches no memory, and every processor of 64 bits has it.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    fn kernel_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// Whether the counter runs at one rate, also while the processor sleeps ("invariant TSC": CPUID 8000_0007h, bit 8 of EDX).
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn has_steady_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}
