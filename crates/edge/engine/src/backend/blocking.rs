//! One blocking operation at a time, for comparison.

use std::io;
use std::sync::Arc;

use virtbench_record::TargetFacts;
use virtbench_workload::{LoadSpec, Op};

#[cfg(unix)]
use super::psync::Psync as Calls;
#[cfg(windows)]
use super::windows::blocking::Calls;
use super::{Backend, Completion};
use crate::error::EngineError;

/// Performs an operation on the calling thread.
pub(crate) struct Blocking {
    calls: Calls,
    queued: Option<(u32, Op, *mut u8)>,
}

impl Blocking {
    /// Operations on a target, as the load asks for them.
    ///
    /// # Errors
    /// The system refuses what they need.
    pub(crate) fn new(
        file: &Arc<std::fs::File>,
        facts: &TargetFacts,
        spec: &LoadSpec,
    ) -> Result<Self, EngineError> {
        Ok(Self { calls: Calls::new(file, facts, spec)?, queued: None })
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
        // A trim may be longer than the buffer, and uses none of it.
        let len = if op.direction.moves_data() { op.len as usize } else { 0 };
        // SAFETY: `queue`'s contract: the buffer holds `op.len` bytes and is ours until completion.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, len) };
        let result = match self.calls.perform(op, buffer) {
            Ok(count) => count as i32,
            Err(error) => -Calls::number(&error),
        };
        completions.push(Completion { slot, result });
        Ok(())
    }
}
