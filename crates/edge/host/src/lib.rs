//! What a machine is, and what its processors are busy with: read on the machine itself, by virtbench or by an agent.

#[cfg(unix)]
mod cpu;
mod cpuid;
mod crossing;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod disk_busy;
#[cfg(unix)]
mod facts;
#[cfg(unix)]
mod listening;
#[cfg(unix)]
mod network_use;
#[cfg(unix)]
mod numa;
#[cfg(unix)]
mod others;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod room;
#[cfg(unix)]
mod tuning;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use cpu::{CpuSample, Unreadable};
pub use crossing::crossing_cost;
#[cfg(unix)]
pub use disk::{chosen_scheduler, disk_facts};
#[cfg(unix)]
pub use disk_busy::disk_busy_ms;
#[cfg(unix)]
pub use facts::{available_memory_bytes, clock_source, host_facts, kernel_release, memory_bytes};
#[cfg(unix)]
pub use listening::listens_at;
#[cfg(unix)]
pub use network_use::NetworkSample;
#[cfg(unix)]
pub use numa::NumaSample;
#[cfg(unix)]
pub use processes::{Processes, system_ticks, user_ticks, with_descendants};
#[cfg(unix)]
pub use room::free_bytes;
#[cfg(unix)]
pub use tuning::mean_frequency_mhz;
#[cfg(windows)]
pub use windows::{
    CpuSample, Unreadable, available_memory_bytes, clock_source, free_bytes, host_facts, kernel_release,
    memory_bytes,
};
