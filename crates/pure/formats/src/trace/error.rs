//! Why a trace cannot be read.

use std::io;

use thiserror::Error;

use super::limits::MAX_OPS;

/// A trace that cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Reading failed.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Syntax {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is larger than can be replayed.
    #[error("line {line}: the trace has more than {MAX_OPS} operations or 1 GiB: cut it")]
    TooLarge {
        /// Where the limit was passed.
        line: usize,
    },
    /// Its first line is of no known format.
    #[error(
        "the first line is neither \"fio version 2 iolog\", \"fio version 3 iolog\", an event of blkparse, a line as MSR Cambridge's \
             traces have them nor a CSV head such as time_us,offset,size,operation (see docs/formats.md)"
    )]
    UnknownFormat,
    /// Nothing is in it.
    #[error("the trace has no operation")]
    Empty,
}
