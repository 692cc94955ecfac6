//! What a machine does while an application runs on it: its processors' time, and which functions of the kernel they
//! spend it in.

mod event;
mod look;
mod sampler;
mod usage;

pub use look::{LeaveOut, Look, machine_cpu_ns};
pub use usage::{process_cpu_ns, thread_clock_ns, thread_cpu_ns};
