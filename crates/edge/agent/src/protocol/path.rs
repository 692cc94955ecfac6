//! What is said on the port on which a path is measured. The first byte says what is to be done with all that follows.

/// Whatever comes goes back.
pub const ECHO: u8 = b'e';
/// Whatever comes is counted; once the other side has ended, the count goes back (64 bits, little endian).
pub const SINK: u8 = b's';
/// Bytes come until the other side hangs up.
pub const SOURCE: u8 = b'g';
/// What is read or written at once, in bytes: as iperf3 does.
pub const BLOCK_BYTES: usize = 128 << 10;
