//! Numbers that both sides use.

use thiserror::Error;

/// The first eight bytes of a connection.
pub(crate) const GREETING: u64 = u64::from_be_bytes(*b"NBDMAGIC");

/// Begins every option, and ends the greeting of a newstyle server.
pub(crate) const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");

/// Begins every reply to an option.
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;

/// Begins every request.
const REQUEST_MAGIC: u32 = 0x2560_9513;

/// Begins every simple reply.
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

/// Length of a simple reply without its payload, in bytes.
pub(crate) const SIMPLE_REPLY_BYTES: usize = 16;

pub(crate) const FLAG_FIXED_NEWSTYLE: u16 = 1;

pub(crate) const FLAG_NO_ZEROES: u16 = 2;

/// Options (NBD_OPT_*).
pub(crate) mod opt {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options (NBD_REP_*).
pub(crate) mod rep {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    /// This bit marks an error.
    pub(crate) const ERROR: u32 = 1 << 31;
    pub(crate) const ERR_UNSUP: u32 = ERROR + 1;
    pub(crate) const ERR_POLICY: u32 = ERROR + 2;
    pub(crate) const ERR_INVALID: u32 = ERROR + 3;
    pub(crate) const ERR_PLATFORM: u32 = ERROR + 4;
    pub(crate) const ERR_TLS_REQD: u32 = ERROR + 5;
    pub(crate) const ERR_UNKNOWN: u32 = ERROR + 6;
    pub(crate) const ERR_SHUTDOWN: u32 = ERROR + 7;
    pub(crate) const ERR_BLOCK_SIZE_REQD: u32 = ERROR + 8;
    pub(crate) const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Kinds of information about an export (NBD_INFO_*).
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// What an export can do (NBD_FLAG_*, the transmission flags).
pub(crate) mod flag {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// The longest name and the longest message, in bytes (proto.md, "Values").
pub(crate) const MAX_STRING_BYTES: usize = 4096;

/// Length of a request without its payload, in bytes.
pub const REQUEST_BYTES: usize = 28;

/// The longest payload sent to or asked of a server that names no limit, in bytes (proto.md, "Block
/// size constraints").
pub const DEFAULT_MAX_PAYLOAD_BYTES: u32 = 32 << 20;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// NBD_CMD_READ
    Read,
    /// NBD_CMD_WRITE
    Write,
    /// NBD_CMD_DISC
    Disconnect,
    /// NBD_CMD_FLUSH
    Flush,
    /// NBD_CMD_TRIM
    Trim,
    /// NBD_CMD_WRITE_ZEROES
    WriteZeroes,
    /// NBD_CMD_BLOCK_STATUS
    BlockStatus,
}

impl Command {
    const ALL: [(Self, u16); 7] = [
        (Self::Read, 0),
        (Self::Write, 1),
        (Self::Disconnect, 2),
        (Self::Flush, 3),
        (Self::Trim, 4),
        (Self::WriteZeroes, 6),
        (Self::BlockStatus, 7),
    ];

    fn code(self) -> u16 {
        Self::ALL.iter().find(|(command, _)| *command == self).map_or(u16::MAX, |(_, code)| *code)
    }

    /// The command of this number, if it is one of those known here.
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == code).map(|(command, _)| *command)
    }
}

/// A request's header, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) magic_is_right: bool,
    pub(crate) flags: u16,
    pub(crate) command: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl RequestHeader {
    pub(crate) fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, Short> {
        let mut wire = Wire(bytes);
        Ok(Self {
            magic_is_right: wire.u32()? == REQUEST_MAGIC,
            flags: wire.u16()?,
            command: wire.u16()?,
            cookie: wire.u64()?,
            offset: wire.u64()?,
            len: wire.u32()?,
        })
    }
}

/// A request's header without command flags. `cookie` comes back in the reply; `offset` and `len` are in bytes.
#[must_use]
pub fn encode_request(command: Command, cookie: u64, offset: u64, len: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    // Bytes 4 and 5 are command flags.
    bytes[6..8].copy_from_slice(&command.code().to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..28].copy_from_slice(&len.to_be_bytes());
    bytes
}

/// Why a request failed (proto.md, "Error values"). The protocol took its numbers from Linux, whose errno they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorCode {
    /// Not permitted: the export is read-only.
    Perm = 1,
    /// The device failed.
    Io = 5,
    /// No memory.
    NoMem = 12,
    /// The request makes no sense.
    Inval = 22,
    /// Beyond the end, or the device is full.
    NoSpc = 28,
    /// Too long to be answered in one piece.
    Overflow = 75,
    /// The export cannot do that.
    NotSup = 95,
    /// The server is going down.
    Shutdown = 108,
}

impl ErrorCode {
    const ALL: [Self; 8] = [
        Self::Perm,
        Self::Io,
        Self::NoMem,
        Self::Inval,
        Self::NoSpc,
        Self::Overflow,
        Self::NotSup,
        Self::Shutdown,
    ];

    /// What a reply says; none for success. Unknown numbers count as [`ErrorCode::Inval`].
    #[must_use]
    pub fn from_wire(number: u32) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|code| code.number() == number);
        (number != 0).then(|| known.unwrap_or(Self::Inval))
    }

    /// The number in a reply.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::from(self as u8)
    }

    /// The number as Linux's errno, positive.
    #[must_use]
    pub fn errno(self) -> i32 {
        i32::from(self as u8)
    }
}

/// Bytes ended too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{wanted} bytes expected, {found} found")]
pub(crate) struct Short {
    wanted: usize,
    found: usize,
}

/// A cursor over bytes from the other side.
pub(crate) struct Wire<'a>(pub(crate) &'a [u8]);

impl<'a> Wire<'a> {
    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let short = Short { wanted: count, found: self.0.len() };
        let (taken, rest) = self.0.split_at_checked(count).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string whose length in bytes stands before it, as four bytes.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Short> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_the_protocol_says() {
        let bytes = encode_request(Command::Write, 0x0102_0304_0506_0708, 4096, 512);
        let expected = [
            0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0,
        ];
        assert_eq!(bytes, expected);
        let header = RequestHeader::decode(&bytes).unwrap();
        assert!(header.magic_is_right && Command::from_code(header.command) == Some(Command::Write));
        assert_eq!((header.cookie, header.offset, header.len), (0x0102_0304_0506_0708, 4096, 512));
    }

    #[test]
    fn unknown_errors_are_errors() {
        assert_eq!(ErrorCode::from_wire(5), Some(ErrorCode::Io));
        assert_eq!(ErrorCode::from_wire(77), Some(ErrorCode::Inval));
        assert_eq!(ErrorCode::from_wire(0), None);
    }

    #[test]
    fn every_command_has_its_number() {
        for (command, code) in Command::ALL {
            assert_eq!((command.code(), Command::from_code(code)), (code, Some(command)));
        }
        assert_eq!((Command::from_code(5), Command::from_code(8)), (None, None));
    }
}
