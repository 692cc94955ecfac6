//! What an application does to its storage, seen from outside.
//!
//! [`profile`] watches a process and everything that descends from it, and gives a
//! [`Profile`](virtbench_record::Profile) of which every figure names its source:
//!
//! - **tracefs**: the block layer's own events, in an instance of our own so that nobody else's tracing
//!   is touched. Sizes, offsets, response times and who issued what. Needs root.
//! - **/proc/PID/io**: bytes that really went to storage, and system calls, of the whole tree.
//! - **block statistics** of the devices, shared out by bytes where no events can be had.
//! - **/proc/PID/stat**: CPU use.
//!
//! Nothing is traced with ptrace, which would slow the application down and falsify what it asks.

mod analysis;
mod application;
mod block_stat;
mod event;
mod figures;
mod sizes;
mod tracefs;
mod tree;
mod watch;

pub use application::{Application, ApplicationError};
pub use event::{EventKind, TraceEvent, parse_line};
pub use tracefs::{NoTracing, Tracing};
pub use tree::kernel_threads_s;
pub use virtbench_counters::Disk;
pub use watch::{Limits, ProfilerError, profile};
