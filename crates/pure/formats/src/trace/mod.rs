//! Block traces: virtbench's CSV and fio's iolog, read line by line.

mod csv;
mod iolog;
mod lines;

use std::io::{self, BufRead};

use thiserror::Error;
use virtbench_workload::{MAX_BLOCK_BYTES, TraceAction, TraceOp};

use lines::Lines;

/// The most operations of a trace.
pub const MAX_OPS: usize = 10_000_000;
/// The largest trace file, in bytes.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;

/// A recorded sequence of operations, ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The operations.
    pub ops: Vec<TraceOp>,
    /// What a reader should know, such as that several files became one target.
    pub notes: Vec<String>,
}

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
        "the first line is neither \"fio version 2 iolog\", \"fio version 3 iolog\" nor a CSV head \
             such as time_us,offset,size,operation (see docs/formats.md)"
    )]
    UnknownFormat,
    /// Nothing is in it.
    #[error("the trace has no operation")]
    Empty,
}

/// Reads a trace whose format the first line shows. At most one line is held beside the operations.
///
/// # Errors
/// Reading failed, the trace is empty, too large, damaged or of no known format.
pub fn read_trace(reader: impl BufRead) -> Result<Trace, TraceError> {
    let mut lines = Lines::new(reader);
    let mut trace = Trace::default();
    let Some((_, first)) = lines.next()? else { return Err(TraceError::Empty) };
    let first = first.to_owned();
    match first.as_str() {
        "fio version 2 iolog" => iolog::read(&mut lines, &mut trace, iolog::Version::Two)?,
        "fio version 3 iolog" => iolog::read(&mut lines, &mut trace, iolog::Version::Three)?,
        head => {
            let head = csv::Head::read(head).ok_or(TraceError::UnknownFormat)?;
            csv::read(&mut lines, &mut trace, &head)?;
        }
    }
    if trace.ops.is_empty() {
        return Err(TraceError::Empty);
    }
    let early = trace.ops.windows(2).find(|pair| pair[1].time_ns < pair[0].time_ns).map(|pair| pair[1].line);
    if let Some(line) = early {
        let note =
            format!("line {line} is earlier than the operation before it: the trace was sorted by time");
        trace.ops.sort_by_key(|op| op.time_ns);
        trace.notes.push(note);
    }
    Ok(trace)
}

/// Writes the CSV that [`read_trace`] reads.
#[must_use]
pub fn write_csv(ops: &[TraceOp]) -> String {
    let mut text = String::from("time_ns,offset,size,operation\n");
    for op in ops {
        let name = match op.action {
            TraceAction::Read => "read",
            TraceAction::Write => "write",
            TraceAction::Trim => "trim",
            TraceAction::Flush => "flush",
        };
        text.push_str(&format!("{},{},{},{name}\n", op.time_ns, op.offset, op.len));
    }
    text
}

impl Trace {
    fn push(&mut self, op: TraceOp, line: usize) -> Result<(), TraceError> {
        if self.ops.len() == MAX_OPS {
            return Err(TraceError::TooLarge { line });
        }
        self.ops.push(op);
        Ok(())
    }

    fn note(&mut self, text: &str) {
        if self.notes.len() < 20 && !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// An operation whose range makes sense.
fn checked(
    time_ns: u64,
    offset: u64,
    size: u64,
    action: TraceAction,
    line: usize,
) -> Result<TraceOp, TraceError> {
    let most = if action == TraceAction::Trim { u64::from(u32::MAX) } else { MAX_BLOCK_BYTES };
    let len = u32::try_from(size).ok().filter(|_| size <= most && (size > 0 || action == TraceAction::Flush));
    let len = len.ok_or_else(|| TraceError::Syntax {
        line,
        why: format!("a size of {size} bytes is outside 1 to {most}"),
    })?;
    if offset.checked_add(size).is_none_or(|end| end > i64::MAX.unsigned_abs()) {
        return Err(TraceError::Syntax { line, why: format!("offset {offset} lies beyond any device") });
    }
    // A file of 1 GiB has fewer lines than that.
    let line = u32::try_from(line).unwrap_or(u32::MAX);
    Ok(TraceOp { time_ns, offset, len, action, line })
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
