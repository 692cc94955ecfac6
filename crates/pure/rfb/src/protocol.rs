//! Numbers of RFC 6143, and what a client sends.

use thiserror::Error;

use crate::rectangle::Rectangle;

pub(crate) const SECURITY_NONE: u8 = 1;

pub(crate) const SECURITY_VNC: u8 = 2;

pub(crate) const RAW: i32 = 0;

pub(crate) const COPY_RECT: i32 = 1;

pub(crate) const HEXTILE: i32 = 5;

pub(crate) const ZRLE: i32 = 16;

pub(crate) const DESKTOP_SIZE: i32 = -223;

pub(crate) const LAST_RECT: i32 = -224;

/// The best first.
pub(crate) const ENCODINGS: [i32; 6] = [ZRLE, HEXTILE, COPY_RECT, RAW, DESKTOP_SIZE, LAST_RECT];

/// Messages of the server.
pub(crate) const UPDATE: u8 = 0;

pub(crate) const COLOURS: u8 = 1;

pub(crate) const BELL: u8 = 2;

pub(crate) const CUT_TEXT: u8 = 3;

/// 32 bits a pixel of which 24 count, least significant byte first, true colour; maxima 255; red from bit 16, green from 8, blue
/// from 0.
pub(crate) const PIXEL_FORMAT: [u8; 16] = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0];

pub(crate) const PIXEL_BYTES: usize = 4;

pub(crate) fn set_pixel_format(out: &mut Vec<u8>) {
    out.extend([0, 0, 0, 0]);
    out.extend(PIXEL_FORMAT);
}

pub(crate) fn set_encodings(out: &mut Vec<u8>) {
    let [.., count] = ENCODINGS.len().to_be_bytes();
    out.extend([2, 0, 0, count]);
    out.extend(ENCODINGS.iter().flat_map(|encoding| encoding.to_be_bytes()));
}

pub(crate) fn request_update(out: &mut Vec<u8>, part: Rectangle, incremental: bool) {
    out.extend([3, u8::from(incremental)]);
    out.extend([part.x, part.y, part.width, part.height].iter().flat_map(|number| number.to_be_bytes()));
}

pub(crate) fn key(out: &mut Vec<u8>, key: u32, pressed: bool) {
    out.extend([4, u8::from(pressed), 0, 0]);
    out.extend(key.to_be_bytes());
}

pub(crate) fn pointer(out: &mut Vec<u8>, buttons: u8, x: u16, y: u16) {
    out.extend([5, buttons]);
    out.extend(x.to_be_bytes());
    out.extend(y.to_be_bytes());
}

/// What a server may ask of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pixels of the picture; each takes 4 bytes.
    pub pixels: u32,
    /// Bytes of a name, of a reason.
    pub text_bytes: u32,
    /// Bytes that somebody copies there; they are passed over.
    pub clipboard_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pixels: 3840 * 2160 * 2, text_bytes: 4096, clipboard_bytes: 16 << 20 }
    }
}

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

/// What can be wrong with a server. Each kind names what to do next, where something can be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RfbError {
    /// It is no VNC server, or breaks the protocol.
    #[error("the server does not speak RFB as RFC 6143 has it: {0}")]
    Protocol(String),
    /// It wants more memory than it gets.
    #[error("the server announces {what} of {size}, more than the limit of {most}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is said to be, with its unit.
        size: String,
        /// What is allowed.
        most: u64,
    },
    /// It offers no way in that is spoken here.
    #[error(
        "the server offers security types {offered:?} only: let it offer None (1) or VNC Authentication (2)"
    )]
    Security {
        /// The types' numbers.
        offered: Vec<u8>,
    },
    /// It asks for a password, and there is none.
    #[error("the server asks for a password: name a file with it")]
    NoPassword,
    /// It does not take the password.
    #[error("the server refuses the password: {reason}; look at the file or the variable that it is from")]
    Password {
        /// In the server's words.
        reason: String,
    },
    /// It does not let us in.
    #[error("the server refuses: {reason}")]
    Refused {
        /// In its words.
        reason: String,
    },
}

impl RfbError {
    pub(crate) fn too_large(what: &'static str, size: impl ToString, most: u64) -> Self {
        Self::TooLarge { what, size: size.to_string(), most }
    }
}

/// What a server says, fit for a terminal.
pub(crate) fn clean(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(200).collect()
}
