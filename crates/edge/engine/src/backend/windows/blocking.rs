//! Blocking calls on a file of Windows.

use std::fs::File;
use std::io;
use std::sync::Arc;

use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, LoadSpec, Op};

use super::port::{refuse_unavailable_trims, trim_now};
use super::{number, open_again};
use crate::error::{EngineError, resource};
use crate::system::Positioned;

/// The calls, as a load asks for them.
pub(in crate::backend) struct Calls {
    file: File,
}

impl Calls {
    /// Operations on the target, as the load asks for them.
    ///
    /// # Errors
    /// It cannot be opened once more, or there are no trims on it.
    pub(in crate::backend) fn new(
        _file: &Arc<File>,
        facts: &TargetFacts,
        spec: &LoadSpec,
    ) -> Result<Self, EngineError> {
        let file = open_again(facts, spec, 0).map_err(|error| resource("opening the target", error))?;
        refuse_unavailable_trims(&file, spec)?;
        Ok(Self { file })
    }

    /// Does an operation, as many bytes as it moved.
    pub(in crate::backend) fn perform(&self, op: Op, buffer: &mut [u8]) -> io::Result<usize> {
        match op.direction {
            Direction::Read => self.file.read_at(buffer, op.offset),
            Direction::Write => self.file.write_at(buffer, op.offset),
            Direction::Trim => trim_now(&self.file, op.offset, op.len).map(|()| 0),
            Direction::Flush => self.file.sync_all().map(|()| 0),
        }
    }

    /// The number by which a failure is recorded.
    pub(in crate::backend) fn number(error: &io::Error) -> i32 {
        number(error)
    }
}
