//! What clients say, in bytes.

#![allow(dead_code, clippy::cast_possible_truncation)]

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const STARTTLS: u32 = 5;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const STRUCTURED_REPLY: u32 = 8;
pub const LIST_META_CONTEXT: u32 = 9;
pub const SET_META_CONTEXT: u32 = 10;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

/// The client's flags: fixed newstyle, no zeroes.
pub fn hello() -> Vec<u8> {
    vec![0, 0, 0, 3]
}

pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &option.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// NBD_OPT_GO or INFO that asks for these kinds of information.
pub fn go(kind: u32, name: &str, wants: &[u16]) -> Vec<u8> {
    let wants: Vec<u8> = [wants.len() as u16].iter().chain(wants).flat_map(|n| n.to_be_bytes()).collect();
    option(kind, &[string(name), wants].concat())
}

/// NBD_OPT_LIST_META_CONTEXT or SET_META_CONTEXT.
pub fn contexts(kind: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let count = (queries.len() as u32).to_be_bytes().to_vec();
    let queries = queries.iter().flat_map(|query| string(query));
    option(kind, &string(name).into_iter().chain(count).chain(queries).collect::<Vec<u8>>())
}

pub fn request(flags: u16, command: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let head = [&0x2560_9513u32.to_be_bytes()[..], &flags.to_be_bytes(), &command.to_be_bytes()].concat();
    [&head[..], &cookie.to_be_bytes(), &offset.to_be_bytes(), &len.to_be_bytes()].concat()
}

pub fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(flags, WRITE, cookie, offset, data.len() as u32), data.to_vec()].concat()
}

/// Option replies in what a server sent: option, type, data.
pub fn option_replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut replies = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(20) {
        assert_eq!(head[..8], 0x0003_e889_0455_65a9u64.to_be_bytes(), "this is no option reply: {bytes:?}");
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (data, rest) = rest.split_at(number(16) as usize);
        replies.push((number(8), number(12), data.to_vec()));
        bytes = rest;
    }
    replies
}

/// A simple reply.
pub fn simple(cookie: u64, error: u32, data: &[u8]) -> Vec<u8> {
    [&0x6744_6698u32.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes(), data].concat()
}

/// A structured reply of one chunk.
pub fn structured(cookie: u64, kind: u16, data: &[u8]) -> Vec<u8> {
    let head = [&0x668e_33efu32.to_be_bytes()[..], &1u16.to_be_bytes(), &kind.to_be_bytes()].concat();
    [&head[..], &cookie.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}
