//! Numbers out of bytes, most significant first.

use crate::error::RfbError;

/// Bytes that are yet to be read.
pub(crate) struct Wire<'a>(pub(crate) &'a [u8]);

impl<'a> Wire<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], RfbError> {
        let ended = || RfbError::Protocol("its data end too early".into());
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(ended)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RfbError> {
        self.bytes(N).map(|bytes| std::array::from_fn(|at| bytes[at]))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, RfbError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, RfbError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, RfbError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, RfbError> {
        self.array().map(i32::from_be_bytes)
    }

    /// A pixel as [`crate::protocol::PIXEL_FORMAT`] has it.
    pub(crate) fn pixel(&mut self) -> Result<u32, RfbError> {
        self.array().map(|bytes: [u8; 4]| u32::from_le_bytes(bytes) & 0x00ff_ffff)
    }

    /// A pixel without its unused byte.
    pub(crate) fn short_pixel(&mut self) -> Result<u32, RfbError> {
        self.array().map(|[blue, green, red]| u32::from_le_bytes([blue, green, red, 0]))
    }

    pub(crate) fn rectangle(&mut self) -> Result<crate::Rectangle, RfbError> {
        Ok(crate::Rectangle { x: self.u16()?, y: self.u16()?, width: self.u16()?, height: self.u16()? })
    }
}
