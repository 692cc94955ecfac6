//! What load to apply, in Iometer's terms ([ESX Disk 2003], section 3.1; [ESX Adapters 2006], "Load Generation"), and which
//! classic workload to run ([`WorkloadSpec`]).
//!
//! An [`AccessSpec`] says what mix of operations is wanted, a [`LoadSpec`] how hard and how long,
//! and a [`Stream`] turns one worker's share of it into single operations. Nothing here performs I/O.

mod access;
mod arrivals;
mod classic;
mod durability;
mod fault;
pub mod files;
mod job;
mod load;
mod load_error;
mod pass;
mod placement;
mod recording;
mod replay;
mod stream;

pub use access::{AccessError, AccessLine, AccessSpec, MAX_BLOCK_BYTES, MAX_TRIM_BYTES, parse_mix_line};
pub use arrivals::{ArrivalTimes, Arrivals, Rate};
pub use classic::{
    CommandSpec, CpuKernel, CpuSpec, MAX_THREADS, MemoryKernel, MemorySpec, Stores, SystemKernel, SystemPart,
    SystemSpec, Workload, WorkloadError, WorkloadSpec, WorkloadSyntaxError, names_command, parse_workload,
    with_options,
};
pub use durability::{FlushKind, WriteSync};
pub use fault::{FaultError, FaultSpec, Verdict};
pub use job::{JobError, JobSpec};
pub use load::{ClockReading, Content, DEFAULT_TIMEOUT_NS, EngineKind, LoadSpec, UringOptions};
pub use load_error::{LoadError, MAX_OUTSTANDING, MAX_PATTERN_BYTES, MAX_PHASE_NS, MAX_RATE, MAX_WORKERS};
pub use pass::{Amount, Traversal};
pub use placement::{Placement, parse_placement};
pub use recording::{Recording, ReplayError};
pub use replay::{Pace, PaceError, Replay, TraceAction, TraceOp};
pub use stream::{Direction, NextOp, Op, Stream};
