//! Requests of the kernel that wait for their answers.

use fuser::{ReplyData, ReplyEmpty, ReplyWrite};

/// A request of the kernel that waits for its answer.
pub(super) enum Waiting {
    Read(ReplyData),
    Write(ReplyWrite),
    Flush(ReplyEmpty),
}

impl Waiting {
    /// Answers it: with what was read, the number of bytes written, or an error's number.
    pub(super) fn answer(self, data: &[u8], result: Result<u32, i32>) {
        match (self, result) {
            (Self::Read(reply), Ok(_)) => reply.data(data),
            (Self::Write(reply), Ok(written)) => reply.written(written),
            (Self::Flush(reply), Ok(_)) => reply.ok(),
            (Self::Read(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
            (Self::Write(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
            (Self::Flush(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
        }
    }
}
