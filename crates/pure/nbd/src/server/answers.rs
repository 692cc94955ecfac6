//! Replies as they are laid out: simple ones, and structured ones of a single chunk.

use super::options::ALLOCATION_ID;
use crate::protocol::{ErrorCode, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC};

/// Begins every chunk of a structured reply.
const STRUCTURED_MAGIC: u32 = 0x668e_33ef;
/// The longest header of a reply, in bytes.
const MAX_BYTES: usize = 32;
/// This chunk is the last.
const DONE: u16 = 1;
const OFFSET_DATA: u16 = 1;
const BLOCK_STATUS: u16 = 5;
const ERROR: u16 = (1 << 15) + 1;

/// A reply but for the data that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl Head {
    fn empty() -> Self {
        Self { bytes: [0; MAX_BYTES], len: 0 }
    }

    fn with<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
        self
    }

    fn chunk(kind: u16, cookie: u64, len: u32) -> Self {
        Self::empty()
            .with(STRUCTURED_MAGIC.to_be_bytes())
            .with(DONE.to_be_bytes())
            .with(kind.to_be_bytes())
            .with(cookie.to_be_bytes())
            .with(len.to_be_bytes())
    }

    /// A simple reply; the data of a read follows it.
    pub(super) fn simple(cookie: u64, error: Option<ErrorCode>) -> Self {
        let head = Self::empty()
            .with(SIMPLE_REPLY_MAGIC.to_be_bytes())
            .with(error.map_or(0, ErrorCode::number).to_be_bytes())
            .with(cookie.to_be_bytes());
        debug_assert_eq!(head.len, SIMPLE_REPLY_BYTES);
        head
    }

    /// A structured reply that `len_bytes` of data follow, at most 32 MiB.
    pub(super) fn data(cookie: u64, offset_bytes: u64, len_bytes: u32) -> Self {
        Self::chunk(OFFSET_DATA, cookie, len_bytes.saturating_add(8)).with(offset_bytes.to_be_bytes())
    }

    /// A structured reply that says that something failed.
    pub(super) fn error(cookie: u64, code: ErrorCode) -> Self {
        Self::chunk(ERROR, cookie, 6).with(code.number().to_be_bytes()).with([0; 2])
    }

    /// A structured reply that says that the whole range holds data.
    pub(super) fn all_data(cookie: u64, len_bytes: u32) -> Self {
        Self::chunk(BLOCK_STATUS, cookie, 12)
            .with(ALLOCATION_ID.to_be_bytes())
            .with(len_bytes.to_be_bytes())
            .with([0; 4])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
