//! What goes wrong with an NBD server.

use std::io;

use thiserror::Error;
use virtbench_units::format_bytes;

/// What goes wrong with an NBD server.
#[derive(Debug, Error)]
pub enum NbdError {
    /// The URI cannot be understood.
    #[error("{uri}: {why}; write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=/PATH")]
    Uri {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there.
    #[error("nobody serves NBD at {address} ({source}): start the server, or correct the address")]
    Connect {
        /// Where.
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server is silent.
    #[error("the server said nothing for {seconds} s of the handshake: is it an NBD server?")]
    Silent {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The server closed the connection.
    #[error("the server closed the connection {during}")]
    Closed {
        /// When.
        during: &'static str,
    },
    /// The server does not speak this protocol.
    #[error("the server does not speak fixed-newstyle NBD: {0}")]
    Protocol(String),
    /// The server has no such export.
    #[error("the server has no export named {name:?}{said}: `nbdinfo --list` shows what it has")]
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
        /// Of what.
        what: &'static str,
        /// How many bytes.
        bytes: u64,
        /// The limit, in bytes.
        most: u64,
    },
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NbdError {
    /// The error number by which operations are counted that this error ended.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Closed { .. } => libc::ECONNRESET,
            Self::Silent { .. } => libc::ETIMEDOUT,
            Self::Io(error) | Self::Connect { source: error, .. } => {
                error.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EPROTO,
        }
    }
}
