//! An NBD client by hand, to say what no library would.

#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

// What clients say is the same to any server.
#[path = "../../../../pure/nbd/tests/common/speech.rs"]
mod speech;

pub use speech::{BLOCK_STATUS, DISCONNECT, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES};
use speech::{EXPORT_NAME, SET_META_CONTEXT, STRUCTURED_REPLY, contexts, hello, option};

/// NBD_CMD_FLAG_FUA.
pub const FUA: u16 = 1;

/// How long an answer may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection that has said nothing yet.
pub fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    // A test that fails must not wait for ever.
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// A connection to an export in the transmission phase, by NBD_OPT_EXPORT_NAME.
pub fn attached(socket: &Path, export: &str) -> UnixStream {
    let mut stream = connect(socket);
    stream.write_all(&[hello(), option(EXPORT_NAME, export.as_bytes())].concat()).unwrap();
    stream.read_exact(&mut [0; 18 + 10]).unwrap();
    stream
}

pub fn request(command: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    flagged(0, command, cookie, offset, len)
}

pub fn flagged(flags: u16, command: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    speech::request(flags, command, cookie, offset, len)
}

/// The error and the cookie of the next simple reply.
pub fn reply(stream: &mut UnixStream) -> (u32, u64) {
    let mut bytes = [0; 16];
    stream.read_exact(&mut bytes).unwrap();
    (u32::from_be_bytes(bytes[4..8].try_into().unwrap()), u64::from_be_bytes(bytes[8..].try_into().unwrap()))
}

/// Writes, and makes it stable.
pub fn write(stream: &mut UnixStream, offset: u64, bytes: &[u8]) {
    stream.write_all(&speech::write(FUA, 1, offset, bytes)).unwrap();
    assert_eq!(reply(stream), (0, 1), "a write at {offset}");
}

pub fn read(stream: &mut UnixStream, offset: u64, len: u32) -> Vec<u8> {
    stream.write_all(&request(READ, 2, offset, len)).unwrap();
    assert_eq!(reply(stream), (0, 2), "a read at {offset}");
    let mut bytes = vec![0; len as usize];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// A connection with structured replies and `base:allocation`.
pub fn attached_structured(socket: &Path, export: &str) -> UnixStream {
    const ACK: usize = 20;
    let mut stream = connect(socket);
    stream.read_exact(&mut [0; 18]).unwrap();
    let structured = option(STRUCTURED_REPLY, &[]);
    let context = contexts(SET_META_CONTEXT, export, &["base:allocation"]);
    let words = [hello(), structured, context, option(EXPORT_NAME, export.as_bytes())].concat();
    stream.write_all(&words).unwrap();
    stream.read_exact(&mut [0; ACK + (ACK + 4 + 15) + ACK + 10]).unwrap();
    stream
}
