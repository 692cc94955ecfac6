//! Who issues I/O: closed-loop threads of a personality, or a recorded trace.

mod files;
mod open;
mod personality;

pub use files::FileSet;
pub use open::{open_client, open_loop};
pub use personality::{Access, AccessKind, Personality};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use virtbench_workload::{Pace, TraceOp};

/// What a virtual machine does with its disk.
#[derive(Debug, Clone)]
pub enum Client {
    /// Nothing: it is not running.
    Off,
    /// Threads that issue an access, wait for it, think, and go on.
    Closed(ClosedLoop),
    /// A recorded trace. An operation waits for its time and for room under `outstanding`; its
    /// response time counts from its time.
    Trace {
        /// The operations by time.
        ops: Arc<[TraceOp]>,
        /// How fast they are replayed.
        pace: Pace,
        /// Operations in flight at most.
        outstanding: u32,
    },
}

/// Threads that issue a personality's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// What they do.
    pub personality: Personality,
    /// Files on the virtual disk.
    pub files: u32,
    /// How many threads. Each waits for its access before it thinks.
    pub threads: u32,
    /// Mean of the exponential think time between accesses, in nanoseconds.
    pub think_ns: f64,
    /// Share of reads that the guest's page cache answers at once. They are accesses of no time, and
    /// neither counted nor issued: the paper's figures are those of file accesses that reach storage.
    pub page_cache_hits: f64,
}
