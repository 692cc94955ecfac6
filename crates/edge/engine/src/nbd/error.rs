//! What goes wrong with an NBD server.

use std::io;

use thiserror::Error;
use virtbench_nbd::client::ClientError;

/// What goes wrong with an NBD server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
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
    /// What the server says or does is wrong.
    #[error(transparent)]
    Server(#[from] ClientError),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NbdError {
    /// The error number by which operations are counted that this error ended.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Server(ClientError::Closed { .. }) => libc::ECONNRESET,
            Self::Silent { .. } => libc::ETIMEDOUT,
            Self::Io(error) | Self::Connect { source: error, .. } => {
                error.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EPROTO,
        }
    }
}
