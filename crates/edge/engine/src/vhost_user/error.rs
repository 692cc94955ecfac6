//! What goes wrong with a vhost-user server.

use std::path::PathBuf;

use thiserror::Error;

/// What goes wrong with a vhost-user server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum VhostUserError {
    /// It cannot be reached, or refuses.
    #[error("vhost-user:{socket}: cannot {action}: {message}; is a vhost-user-blk server listening there, with no other client?",
        socket = socket.display())]
    Failed {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the `blkio` crate said.
        message: String,
    },
    /// It does not answer.
    #[error("vhost-user:{socket}: no answer within {seconds} s while trying to {action}: is it a vhost-user-blk server, \
        with no other client?", socket = socket.display())]
    Silent {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// It says what cannot be.
    #[error("vhost-user:{socket}: the server's answers make no sense (while trying to {action})", socket = socket.display())]
    Nonsense {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
    },
}
