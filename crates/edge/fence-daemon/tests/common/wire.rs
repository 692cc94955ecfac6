//! A connection of the model's: bytes that go out and come in without anybody waiting.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::raw;

const SIMPLE: u32 = 0x6744_6698;
const STRUCTURED: u32 = 0x668e_33ef;
const STAGING_BYTES: usize = 256 << 10;
/// NBD_REPLY_TYPE_ERROR.
const ERROR: u16 = (1 << 15) + 1;

/// An answer. Of a read by a simple reply, the data follows the header.
#[derive(Debug)]
pub struct Answer {
    pub cookie: u64,
    pub error: u32,
    pub data: Vec<u8>,
}

/// A socket, what waits to be sent, and what has come.
pub struct Wire {
    socket: UnixStream,
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    structured: bool,
}

impl Wire {
    pub fn attach(socket: &Path, export: &str, structured: bool) -> Self {
        let socket =
            if structured { raw::attached_structured(socket, export) } else { raw::attached(socket, export) };
        socket.set_nonblocking(true).unwrap();
        Self { socket, outbox: Vec::new(), inbox: Vec::new(), structured }
    }

    pub const fn is_structured(&self) -> bool {
        self.structured
    }

    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// Sends and receives what can be. False if the server has closed.
    pub fn move_bytes(&mut self, staging: &mut [u8]) -> bool {
        let mut sent = 0;
        while sent < self.outbox.len() {
            match self.socket.write(&self.outbox[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        self.outbox.drain(..sent);
        loop {
            match self.socket.read(staging) {
                Ok(0) => return false,
                Ok(count) => self.inbox.extend_from_slice(&staging[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// All whole answers; `read_bytes` says how much data an answer without an error brings.
    pub fn answers(&mut self, mut read_bytes: impl FnMut(u64) -> usize) -> Vec<Answer> {
        let (mut at, mut answers) = (0, Vec::new());
        while let Some((answer, len)) = parse(&self.inbox[at..], &mut read_bytes) {
            at += len;
            answers.push(answer);
        }
        self.inbox.drain(..at);
        answers
    }
}

pub fn staging() -> Vec<u8> {
    vec![0; STAGING_BYTES]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The first answer and its length, if it is whole.
fn parse(bytes: &[u8], read_bytes: &mut impl FnMut(u64) -> usize) -> Option<(Answer, usize)> {
    match bytes.get(..4).map(|magic| word(magic, 0))? {
        SIMPLE if bytes.len() >= 16 => {
            let (error, cookie) = (word(bytes, 4), long(bytes, 8));
            let len = if error == 0 { read_bytes(cookie) } else { 0 };
            let data = bytes.get(16..16 + len)?.to_vec();
            Some((Answer { cookie, error, data }, 16 + len))
        }
        STRUCTURED if bytes.len() >= 20 => {
            let (kind, cookie, len) = (word(bytes, 4) & 0xffff, long(bytes, 8), word(bytes, 16) as usize);
            let payload = bytes.get(20..20 + len)?;
            let fails = kind == u32::from(ERROR);
            let error = if fails { word(payload, 0) } else { 0 };
            let data = if fails { Vec::new() } else { payload[8..].to_vec() };
            Some((Answer { cookie, error, data }, 20 + len))
        }
        SIMPLE | STRUCTURED => None,
        magic => panic!("a reply that begins with {magic:x}"),
    }
}
