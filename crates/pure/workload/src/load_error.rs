//! Why a load cannot be applied.

use thiserror::Error;
use virtbench_units::format_bytes;

use crate::access::AccessError;
use crate::limits::{MAX_BUFFER_BYTES, MAX_MAP_BYTES, MAX_RATE};
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
