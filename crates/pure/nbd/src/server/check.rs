//! Whether a request may be carried out.

use super::chosen::Chosen;
use super::{Export, Op};
use crate::protocol::{Command, ErrorCode, RequestHeader};

/// Command flags (NBD_CMD_FLAG_*).
mod cmd {
    pub(super) const FUA: u16 = 1;
    pub(super) const NO_HOLE: u16 = 1 << 1;
    pub(super) const DF: u16 = 1 << 2;
    pub(super) const REQ_ONE: u16 = 1 << 3;
}

/// What an export allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    size_bytes: u64,
    min_block_bytes: u32,
    read_only: bool,
    max_payload_bytes: u32,
    structured: bool,
    allocation: bool,
}

/// A request that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// For the driver.
    Do { op: Op, fua: bool },
    /// Answered here: the whole range is data.
    BlockStatus,
}

impl Rules {
    pub(super) fn new(export: &Export, chosen: Chosen, max_payload_bytes: u32) -> Self {
        Self {
            size_bytes: export.size_bytes,
            min_block_bytes: export.min_block_bytes.max(1),
            read_only: export.read_only,
            max_payload_bytes,
            structured: chosen.structured,
            allocation: chosen.allocation,
        }
    }

    /// Whether reads are answered by structured replies.
    pub(super) fn structured(&self) -> bool {
        self.structured
    }

    /// Says what to do, or with what the request fails (proto.md, "Request types" and "Error values").
    pub(super) fn check(&self, header: &RequestHeader) -> Result<Allowed, ErrorCode> {
        let command = Command::from_code(header.command).ok_or(ErrorCode::Inval)?;
        self.check_flags(command, header.flags)?;
        let op = match command {
            Command::Read => Op::Read,
            Command::Write => Op::Write,
            Command::Flush => Op::Flush,
            Command::Trim => Op::Trim,
            Command::WriteZeroes => Op::WriteZeroes { may_trim: header.flags & cmd::NO_HOLE == 0 },
            Command::BlockStatus if self.allocation => {
                self.check_range(header, ErrorCode::Inval)?;
                return Ok(Allowed::BlockStatus);
            }
            Command::BlockStatus | Command::Disconnect => return Err(ErrorCode::Inval),
        };
        let changes = !matches!(op, Op::Read | Op::Flush);
        if changes && self.read_only {
            return Err(ErrorCode::Perm);
        }
        match op {
            Op::Flush if header.offset != 0 || header.len != 0 => return Err(ErrorCode::Inval),
            Op::Flush => {}
            Op::Write | Op::WriteZeroes { .. } => self.check_range(header, ErrorCode::NoSpc)?,
            Op::Read | Op::Trim => self.check_range(header, ErrorCode::Inval)?,
        }
        if matches!(op, Op::Read | Op::Write) && header.len > self.max_payload_bytes {
            return Err(ErrorCode::Inval);
        }
        Ok(Allowed::Do { op, fua: changes && header.flags & cmd::FUA != 0 })
    }

    fn check_flags(&self, command: Command, flags: u16) -> Result<(), ErrorCode> {
        let mut known = cmd::FUA;
        match command {
            Command::WriteZeroes => known |= cmd::NO_HOLE,
            Command::Read if self.structured => known |= cmd::DF,
            Command::BlockStatus => known |= cmd::REQ_ONE,
            _ => {}
        }
        if flags & !known == 0 { Ok(()) } else { Err(ErrorCode::Inval) }
    }

    fn check_range(&self, header: &RequestHeader, beyond: ErrorCode) -> Result<(), ErrorCode> {
        let block = u64::from(self.min_block_bytes);
        let len = u64::from(header.len);
        if len == 0 || !header.offset.is_multiple_of(block) || !len.is_multiple_of(block) {
            return Err(ErrorCode::Inval);
        }
        match header.offset.checked_add(len) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(beyond),
        }
    }
}
