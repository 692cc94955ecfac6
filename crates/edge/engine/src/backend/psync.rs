//! One blocking `pread` or `pwrite` at a time, for comparison.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use virtbench_workload::{Direction, Op};

use super::{Backend, Completion};

/// Performs an operation on the calling thread.
pub(crate) struct Psync {
    file: Arc<File>,
    queued: Option<(u32, Op, *mut u8)>,
}

impl Psync {
    /// Operations on `file`.
    pub(crate) fn new(file: Arc<File>) -> Self {
        Self { file, queued: None }
    }
}

impl Psync {
    fn perform(&self, op: Op, buffer: &mut [u8]) -> io::Result<usize> {
        match op.direction {
            Direction::Read => self.file.read_at(buffer, op.offset),
            Direction::Write => self.file.write_at(buffer, op.offset),
            Direction::Trim => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(fallocate(&self.file, hole, op.offset, op.len.into()).map(|()| 0)?)
            }
            Direction::Flush => Ok(fdatasync(&self.file).map(|()| 0)?),
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
        // SAFETY: `queue`'s contract: the buffer holds `op.len` bytes and is ours until completion.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, op.len as usize) };
        let result = match self.perform(op, buffer) {
            Ok(count) => count as i32,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        completions.push(Completion { slot, result });
        Ok(())
    }
}
