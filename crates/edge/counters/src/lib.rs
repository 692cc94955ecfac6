//! What a machine does while an application runs on it: its processors' time, and which functions of the kernel they
//! spend it in.

#[cfg(unix)]
mod crossings;
mod disks;
#[cfg(unix)]
mod event;
#[cfg(unix)]
mod hardware;
mod look;
#[cfg(unix)]
mod sampler;
#[cfg(unix)]
mod tracefs;
#[cfg(unix)]
mod usage;
#[cfg(windows)]
mod windows;

pub use disks::Disk;
#[cfg(unix)]
pub use hardware::{CodeCounts, Counted, HardwareCounters, KVM_FOLDER, kvm_counts, per_transaction};
pub use look::{Instruments, LeaveOut, Look};
#[cfg(unix)]
pub use tracefs::tracefs;
#[cfg(unix)]
pub use usage::{
    machine_cpu_ns, process_cpu_ns, thread_clock_ns, thread_cpu_ns, thread_waiting_ns, throttled_ns,
};
#[cfg(windows)]
pub use windows::{machine_cpu_ns, process_cpu_ns, thread_clock_ns, thread_cpu_ns};
