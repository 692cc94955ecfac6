//! What a client finds wrong with a server.

use thiserror::Error;
use virtbench_units::format_bytes;

use crate::wire::Short;

/// What a client finds wrong with a server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ClientError {
    /// The server closed the connection.
    #[error("the server closed the connection {during}")]
    Closed { during: &'static str },
    /// The server does not speak this protocol.
    #[error("the server does not speak fixed-newstyle NBD: {0}")]
    Protocol(String),
    /// The server has no such export.
    #[error("the server has no export named {name:?}{said}: `nbdinfo` lists what it has")]
    NoExport {
        /// The name asked for.
        name: String,
        /// What the server said, in brackets.
        said: String,
    },
    /// The server refuses.
    #[error("the server refuses ({reason}){said}")]
    Refused {
        /// The protocol's name of the reason.
        reason: String,
        /// What the server said, in brackets.
        said: String,
    },
    /// More bytes than the protocol or common sense allows.
    #[error("the server announces {what} of {}, more than the {} allowed", format_bytes(*bytes), format_bytes(*most))]
    TooLong {
        what: &'static str,
        /// How many bytes.
        bytes: u64,
        /// The limit, in bytes.
        most: u64,
    },
}

impl From<Short> for ClientError {
    fn from(short: Short) -> Self {
        Self::Protocol(short.to_string())
    }
}
