//! One blocking `pread` or `pwrite` at a time, for comparison.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{ReadWriteFlags, pwritev2};
use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, FlushKind, LoadSpec, Op, WriteSync};

use super::{Backend, Completion};
use crate::error::EngineError;

/// Performs an operation on the calling thread.
pub(crate) struct Psync {
    file: Arc<File>,
    flush: FlushKind,
    write_flags: ReadWriteFlags,
    queued: Option<(u32, Op, *mut u8)>,
}

impl Psync {
    /// Operations on `file`, as the load asks for them.
    #[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
    pub(crate) fn new(file: &Arc<File>, _facts: &TargetFacts, spec: &LoadSpec) -> Result<Self, EngineError> {
        let write_flags = match spec.write_sync {
            WriteSync::None => ReadWriteFlags::empty(),
            WriteSync::Data => ReadWriteFlags::DSYNC,
            WriteSync::All => ReadWriteFlags::SYNC,
        };
        Ok(Self { file: Arc::clone(file), flush: spec.flush, write_flags, queued: None })
    }
}

impl Psync {
    fn perform(&self, op: Op, buffer: &mut [u8]) -> io::Result<usize> {
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
}

impl Backend for Psync {
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
        let result = match self.perform(op, buffer) {
            Ok(count) => count as i32,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        completions.push(Completion { slot, result });
        Ok(())
    }
}
