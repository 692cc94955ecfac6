//! Reading big-endian numbers from bytes that may be too few.

use thiserror::Error;

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
