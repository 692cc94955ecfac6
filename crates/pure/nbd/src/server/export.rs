//! What is served, and within which bounds.

use crate::protocol::{DEFAULT_MAX_PAYLOAD_BYTES, flag};

/// An export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The name clients ask for; at most 4096 bytes.
    pub name: String,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Requests must be multiples of this, in bytes: a power of two up to 65536.
    pub min_block_bytes: u32,
    /// Requests are best multiples of this, in bytes: a power of two.
    pub preferred_block_bytes: u32,
    /// It is served no more: nobody finds it. Exports after it keep their places.
    pub is_withdrawn: bool,
}

impl Export {
    /// The transmission flags.
    pub(super) fn flags(&self, structured: bool) -> u16 {
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN;
        flags |= if self.read_only { flag::READ_ONLY } else { flag::SEND_TRIM | flag::SEND_WRITE_ZEROES };
        if structured {
            flags |= flag::SEND_DF;
        }
        flags
    }
}

/// Bounds of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight, or whose reply has not left.
    pub max_requests: u32,
    /// Payload of those, in bytes; at least `max_payload_bytes`.
    pub max_bytes: u64,
    /// The longest read or write, in bytes.
    pub max_payload_bytes: u32,
    /// How long a client may take to choose an export, in nanoseconds.
    pub negotiation_ns: u64,
    /// How long a client may stop in the middle of a request, or take nothing of a reply, in nanoseconds.
    pub stall_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_requests: 128,
            max_bytes: 2 * u64::from(DEFAULT_MAX_PAYLOAD_BYTES),
            max_payload_bytes: DEFAULT_MAX_PAYLOAD_BYTES,
            negotiation_ns: 10_000_000_000,
            stall_ns: 60_000_000_000,
        }
    }
}

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// Never.
    #[default]
    Off,
    /// If the client asks for it.
    Offered,
    /// Always: nothing is told or served before.
    Required,
}

/// How a server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerConfig {
    /// Bounds of each connection.
    pub limits: Limits,
    /// Whether connections are encrypted.
    pub tls: Tls,
}
