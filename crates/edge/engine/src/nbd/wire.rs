//! Reading big-endian numbers from bytes that may be too few.

use super::NbdError;

/// A cursor over bytes from a server.
pub(super) struct Wire<'a>(pub(super) &'a [u8]);

impl<'a> Wire<'a> {
    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], NbdError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| NbdError::Protocol(format!("{count} bytes expected, {} found", self.0.len())))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NbdError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn u16(&mut self) -> Result<u16, NbdError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, NbdError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, NbdError> {
        self.array().map(u64::from_be_bytes)
    }
}
