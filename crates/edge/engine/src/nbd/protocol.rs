//! Requests and error numbers of the transmission phase.

/// Begins every request.
const REQUEST_MAGIC: u32 = 0x2560_9513;
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
}

impl Command {
    fn code(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
        }
    }
}

/// A request's header. `cookie` comes back in the reply; `offset` and `len` are in bytes.
#[must_use]
pub fn encode_request(command: Command, cookie: u64, offset: u64, len: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    // Bytes 4 and 5 are command flags, of which none is used.
    bytes[6..8].copy_from_slice(&command.code().to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..28].copy_from_slice(&len.to_be_bytes());
    bytes
}

/// The error number of this system for one in a reply; unknown ones count as EINVAL (proto.md,
/// "Error values").
#[must_use]
pub fn errno_of(error: u32) -> i32 {
    match error {
        0 => 0,
        1 => libc::EPERM,
        5 => libc::EIO,
        12 => libc::ENOMEM,
        28 => libc::ENOSPC,
        75 => libc::EOVERFLOW,
        95 => libc::EOPNOTSUPP,
        108 => libc::ESHUTDOWN,
        _ => libc::EINVAL,
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
    }

    #[test]
    fn unknown_errors_are_errors() {
        assert_eq!((errno_of(5), errno_of(77), errno_of(0)), (libc::EIO, libc::EINVAL, 0));
    }
}
