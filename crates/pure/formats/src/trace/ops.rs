//! The operations of a trace.

use virtbench_workload::{MAX_BLOCK_BYTES, TraceAction, TraceOp};

use super::error::TraceError;
use super::limits::MAX_OPS;

/// A recorded sequence of operations, ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The operations.
    pub ops: Vec<TraceOp>,
    /// What a reader should know, such as that several files became one target.
    pub notes: Vec<String>,
}

impl Trace {
    pub(super) fn push(&mut self, op: TraceOp, line: usize) -> Result<(), TraceError> {
        if self.ops.len() == MAX_OPS {
            return Err(TraceError::TooLarge { line });
        }
        self.ops.push(op);
        Ok(())
    }

    pub(super) fn note(&mut self, text: &str) {
        if self.notes.len() < 20 && !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// An operation whose range makes sense.
pub(super) fn checked(
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
