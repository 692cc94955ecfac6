//! Blocking calls: `pread`, `pwrite` and what else a load asks for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{ReadWriteFlags, pwritev2};
use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, FlushKind, LoadSpec, Op, WriteSync};

use crate::error::EngineError;

/// The calls, as a load asks for them.
pub(super) struct Psync {
    file: Arc<File>,
    flush: FlushKind,
    write_flags: ReadWriteFlags,
}

impl Psync {
    /// Operations on `file`, as the load asks for them.
    #[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
    pub(super) fn new(file: &Arc<File>, _facts: &TargetFacts, spec: &LoadSpec) -> Result<Self, EngineError> {
        let write_flags = match spec.write_sync {
            WriteSync::None => ReadWriteFlags::empty(),
            WriteSync::Data => ReadWriteFlags::DSYNC,
            WriteSync::All => ReadWriteFlags::SYNC,
        };
        Ok(Self { file: Arc::clone(file), flush: spec.flush, write_flags })
    }

    /// Does an operation, as many bytes as it moved.
    pub(super) fn perform(&self, op: Op, buffer: &mut [u8]) -> io::Result<usize> {
        match op.direction {
            Direction::Read => self.file.read_at(buffer, op.offset),
            Direction::Write if self.write_flags.is_empty() => self.file.write_at(buffer, op.offset),
            Direction::Write => {
                Ok(pwritev2(&self.file, &[io::IoSlice::new(buffer)], op.offset, self.write_flags)?)
            }
            Direction::Trim => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(fallocate(&self.file, hole, op.offset, op.len.into()).map(|()| 0)?)
            }
            Direction::Flush => match self.flush {
                FlushKind::Data => Ok(fdatasync(&self.file).map(|()| 0)?),
                FlushKind::All => Ok(fsync(&self.file).map(|()| 0)?),
            },
        }
    }

    /// The number by which a failure is recorded.
    pub(super) fn number(error: &io::Error) -> i32 {
        error.raw_os_error().unwrap_or(libc::EIO)
    }
}
