//! Why a load cannot be applied.

use thiserror::Error;
use virtbench_units::format_bytes;

use crate::access::AccessError;
use crate::recording::ReplayError;

/// A load that cannot be applied.
#[derive(Debug, Error, PartialEq)]
pub enum LoadError {
    /// The mix is wrong.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The trace cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A number outside its limits.
    #[error("{field} {value} is outside {least} to {most}")]
    Range {
        /// The field to change.
        field: &'static str,
        /// What was given.
        value: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// The buffers would need too much memory.
    #[error(
        "{workers} workers x {outstanding} outstanding x {} buffers need {}, more than {}: lower one of them",
        format_bytes(*block_bytes), format_bytes(*total_bytes), format_bytes(MAX_BUFFER_BYTES)
    )]
    Memory {
        /// Workers asked for.
        workers: u32,
        /// Outstanding I/Os a worker.
        outstanding: u32,
        /// The largest block, in bytes.
        block_bytes: u64,
        /// All buffers together, in bytes.
        total_bytes: u64,
    },
    /// The region is smaller than one operation.
    #[error("the target's {} are too small for operations of {}: raise `region_bytes` or lower `size_bytes`",
        format_bytes(*region_bytes), format_bytes(*block_bytes))]
    RegionTooSmall {
        /// The region, in bytes.
        region_bytes: u64,
        /// The largest operation, in bytes.
        block_bytes: u64,
    },
    /// A blocking engine with several outstanding I/Os.
    #[error(
        "`engine` psync blocks on each operation, so `outstanding` {outstanding} is not possible: \
             use `outstanding` 1 with `workers` {outstanding}"
    )]
    PsyncOutstanding {
        /// Outstanding I/Os asked for.
        outstanding: u32,
    },
    /// A rate that is no rate.
    #[error("`rate` {per_second}/s is outside 0.001/s to {MAX_RATE}/s, of all workers together")]
    Rate {
        /// Operations per second asked for.
        per_second: f64,
    },
    /// An amount of nothing.
    #[error("an amount of 0 bytes, operations or passes is no load: leave it out or raise it")]
    Nothing,
    /// Blocks of the map that operations do not begin at.
    #[error(
        "visiting every block once needs operations that begin at multiples of the smallest one, {}: align them to \
         that, or let blocks repeat (norandommap)",
        format_bytes(*grain_bytes)
    )]
    MapAlignment {
        /// The smallest operation, in bytes.
        grain_bytes: u64,
    },
    /// The maps of visited blocks would need too much memory.
    #[error(
        "remembering which blocks were visited takes {}, more than {}: lower `region_bytes`, or let blocks repeat (norandommap)",
        format_bytes(*total_bytes), format_bytes(MAX_MAP_BYTES)
    )]
    Map {
        /// All maps together, in bytes.
        total_bytes: u64,
    },
    /// Two things that exclude each other.
    #[error("{first} and {second} exclude each other: {why}")]
    Conflict {
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
}

/// The most outstanding I/Os a worker can keep.
pub const MAX_OUTSTANDING: u32 = 4096;

/// The most workers.
pub const MAX_WORKERS: u32 = 256;

/// The most buffer memory a load may ask for, in bytes.
pub(crate) const MAX_BUFFER_BYTES: u64 = 4 << 30;

/// The longest pattern that is written, in bytes (fio's own limit).
pub const MAX_PATTERN_BYTES: usize = 512;

/// The most positions that take turns, beside the first.
pub(crate) const MAX_POSITIONS: u32 = 255;

/// The highest rate of an open loop, in operations per second: drawing the intended starts alone
/// would take a fifth of a processor.
pub const MAX_RATE: f64 = 1e7;

/// The most memory for maps of visited blocks, in bytes: 32 TiB in blocks of 4 KiB.
pub(crate) const MAX_MAP_BYTES: u64 = 1 << 30;

/// The longest ramp-up or measurement: a week.
pub const MAX_PHASE_NS: u64 = 7 * 24 * 3_600_000_000_000;
