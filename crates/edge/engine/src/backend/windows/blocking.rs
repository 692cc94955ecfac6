//! One blocking read or write at a time, for comparison.

use std::fs::File;
use std::io;
use std::sync::Arc;

use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, LoadSpec, Op};

use super::trim::{refuse_unavailable_trims, trim_now};
use super::{number, open_again};
use crate::backend::{Backend, Completion};
use crate::error::{EngineError, resource};
use crate::system::Positioned;

/// Performs an operation on the calling thread.
pub(crate) struct Blocking {
    file: File,
    queued: Option<(u32, Op, *mut u8)>,
}

impl Blocking {
    /// Operations on the target, as the load asks for them.
    ///
    /// # Errors
    /// It cannot be opened once more, or there are no trims on it.
    pub(crate) fn new(_file: &Arc<File>, facts: &TargetFacts, spec: &LoadSpec) -> Result<Self, EngineError> {
        let file = open_again(facts, spec, 0).map_err(|error| resource("opening the target", error))?;
        refuse_unavailable_trims(&file, spec)?;
        Ok(Self { file, queued: None })
    }

    fn perform(&self, op: Op, buffer: &mut [u8]) -> io::Result<usize> {
        match op.direction {
            Direction::Read => self.file.read_at(buffer, op.offset),
            Direction::Write => self.file.write_at(buffer, op.offset),
            Direction::Trim => trim_now(&self.file, op.offset, op.len).map(|()| 0),
            Direction::Flush => self.file.sync_all().map(|()| 0),
        }
    }
}

impl Backend for Blocking {
    const BLOCKS: bool = true;

    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        self.queued = Some((slot, op, buffer));
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn drive(&mut self, _until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        let Some((slot, op, buffer)) = self.queued.take() else { return Ok(()) };
        let len = if op.direction.moves_data() { op.len as usize } else { 0 };
        // SAFETY: `queue`'s contract: the buffer holds `op.len` bytes and is ours until completion.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, len) };
        let result = match self.perform(op, buffer) {
            Ok(count) => count as i32,
            Err(error) => -number(&error),
        };
        completions.push(Completion { slot, result });
        Ok(())
    }
}
