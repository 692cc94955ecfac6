//! Memory for payload, of all clients together.

use crate::frontend::Host;
use crate::memory::Buffer;

/// Bytes that may be held, and those that are.
#[derive(Debug)]
pub(super) struct Budget {
    most_bytes: u64,
    held_bytes: u64,
}

impl Budget {
    pub(super) const fn new(most_bytes: u64) -> Self {
        Self { most_bytes, held_bytes: 0 }
    }

    /// A buffer of at least `len_bytes`, unless too many are held.
    pub(super) fn take(&mut self, len_bytes: u32, host: &mut Host<'_>) -> Option<Buffer> {
        if self.held_bytes + u64::from(len_bytes) > self.most_bytes {
            return None;
        }
        let buffer = host.buffer(len_bytes as usize);
        self.held_bytes += buffer.len() as u64;
        Some(buffer)
    }

    /// Gives one back.
    pub(super) fn give(&mut self, buffer: Buffer, host: &mut Host<'_>) {
        self.held_bytes -= buffer.len() as u64;
        host.give(buffer);
    }
}
