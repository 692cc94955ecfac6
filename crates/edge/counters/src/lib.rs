//! What a machine does while an application runs on it: its processors' time, and which functions of the kernel they
//! spend it in.

mod event;
mod hardware;
mod kvm_exits;
mod look;
mod sampler;
mod usage;
mod waiting;

pub use hardware::{CodeCounts, Counted, HardwareCounters};
pub use kvm_exits::{KVM_FOLDER, kvm_counts, per_transaction};
pub use look::{LeaveOut, Look, machine_cpu_ns};
pub use usage::{process_cpu_ns, thread_clock_ns, thread_cpu_ns};
pub use waiting::{thread_waiting_ns, throttled_ns};
