//! What a machine is, and what its processors are busy with: read on the machine itself, by virtbench or by an agent.

mod cpu;
mod crossing;
mod disk;
mod disk_busy;
mod facts;
mod listening;
mod network_use;
mod numa;
mod others;
mod processes;
mod room;
mod tuning;

pub use cpu::{CpuSample, Unreadable};
pub use crossing::crossing_cost;
pub use disk::{chosen_scheduler, disk_facts};
pub use disk_busy::disk_busy_ms;
pub use facts::{available_memory_bytes, host_facts, memory_bytes};
pub use listening::listens_at;
pub use network_use::NetworkSample;
pub use numa::NumaSample;
pub use processes::{Processes, system_ticks, user_ticks, with_descendants};
pub use room::free_bytes;
pub use tuning::mean_frequency_mhz;
