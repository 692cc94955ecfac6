//! The null target: operations complete as soon as they are driven. What remains is the engine's
//! own cost.

use std::io;

use virtbench_workload::Op;

use super::{Backend, Completion};

/// Completes everything at once.
#[derive(Default)]
pub(crate) struct Null {
    queued: Vec<Completion>,
}

impl Backend for Null {
    #[inline]
    #[allow(clippy::cast_possible_wrap)]
    fn queue(&mut self, slot: u32, op: Op, _buffer: *mut u8) {
        let result = if op.direction.moves_data() { op.len as i32 } else { 0 };
        self.queued.push(Completion { slot, result });
    }

    #[inline]
    fn drive(&mut self, _until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        completions.append(&mut self.queued);
        Ok(())
    }
}
