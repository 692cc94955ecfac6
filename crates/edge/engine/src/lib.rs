//! Applies a load to a target and records the latency of every operation.
//!
//! ```text
//! TargetRequest --open--> Target --+
//!                                  +--> run --> one thread per worker:
//! LoadSpec ------------------------+            Stream (what next) -> Backend (do it) -> Recorder
//! ```
//!
//! A [`Target`] is opened, created and written beforehand, under rules that protect foreign data.
//! [`run`] then starts the workers at one agreed moment and merges what they recorded.

mod backend;
mod buffers;
mod clock;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod counter_clock;
mod error;
mod fault;
mod flow;
mod live;
mod members;
#[cfg(feature = "network-targets")]
pub mod nbd;
mod open_loop;
mod recorder;
mod replay;
mod run;
mod slots;
mod system;
mod target;
mod verify;
#[cfg(feature = "network-targets")]
mod vhost_user;
mod worker;

pub use buffers::{Buffers, memory_note};
pub use clock::monotonic_ns;
pub use error::EngineError;
pub use flow::{Flow, FlowGroup};
pub use live::{LIVE_BUCKETS, LiveSample};
pub use run::{Control, Verified, run, verify};
pub use system::Positioned;
pub use target::{Target, TargetError, TargetName, TargetRequest, is_test_file};
pub use verify::LedgerError;
#[cfg(feature = "network-targets")]
pub use vhost_user::VhostUserError;
pub use virtbench_counters::{process_cpu_ns, thread_clock_ns, thread_cpu_ns};
