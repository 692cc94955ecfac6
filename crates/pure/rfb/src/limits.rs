//! What a server may ask of us.

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
