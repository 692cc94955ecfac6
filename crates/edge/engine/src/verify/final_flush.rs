//! Making durable what a load has written.

use std::io;

use virtbench_workload::{Direction, Op};

use crate::backend::{Backend, Task};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;

/// How often the limit is looked at.
const NAP_NS: u64 = 50_000_000;

/// One flush, which may take so long. Answers whether it succeeded.
pub(crate) struct FinalFlush {
    pub buffers: Buffers,
    pub timeout_ns: u64,
}

impl Task for FinalFlush {
    type Output = io::Result<bool>;

    fn perform<B: Backend>(mut self, backend: &mut B) -> io::Result<bool> {
        let limit_ns = monotonic_ns() + self.timeout_ns;
        let mut completions = Vec::new();
        let op = Op { direction: Direction::Flush, offset: 0, len: 0, line: 0 };
        backend.queue(0, op, self.buffers.slot(0).as_mut_ptr());
        while completions.is_empty() && monotonic_ns() < limit_ns {
            backend.drive(Some(limit_ns.min(monotonic_ns() + NAP_NS)), &mut completions)?;
        }
        Ok(completions.first().is_some_and(|completion| completion.result == 0))
    }
}
