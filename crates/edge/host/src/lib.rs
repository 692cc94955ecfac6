//! What a machine is, and what its processors are busy with: read on the machine itself, by virtbench or by an agent.

#[cfg(unix)]
mod cpu;
mod cpuid;
mod crossing;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod facts;
#[cfg(unix)]
mod listening;
#[cfg(unix)]
mod network_use;
#[cfg(unix)]
mod numa;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use cpu::{CpuSample, Processes, Unreadable, system_ticks, user_ticks, with_descendants};
pub use crossing::crossing_cost;
#[cfg(unix)]
pub use disk::{chosen_scheduler, disk_busy_ms, disk_facts, free_bytes};
#[cfg(unix)]
pub use facts::{
    available_memory_bytes, clock_source, host_facts, kernel_release, mean_frequency_mhz, memory_bytes,
};
#[cfg(unix)]
pub use listening::listens_at;
#[cfg(unix)]
pub use network_use::NetworkSample;
#[cfg(unix)]
pub use numa::NumaSample;
#[cfg(windows)]
pub use windows::{
    CpuSample, Unreadable, available_memory_bytes, clock_source, free_bytes, host_facts, kernel_release,
    memory_bytes,
};
