//! What can go wrong with a user's desktop.

use std::io;

use thiserror::Error;
use virtbench_desktops::Unreadable;
use virtbench_rfb::RfbError;

/// What is to be done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation has failed; its user begins another application.
    Operation,
    /// The desktop is of no use any more; its user is gone.
    Desktop,
}

/// What can go wrong with a user's desktop.
#[derive(Debug, Error)]
pub enum Fault {
    /// The server breaks the protocol, or refuses the login.
    #[error(transparent)]
    Protocol(#[from] RfbError),
    /// There is no connection.
    #[error(
        "the VNC server cannot be reached: {0}; does it listen there, and do firewalls let this host in?"
    )]
    Unreached(io::Error),
    /// The connection is gone.
    #[error("the connection to {0} is lost: {1}")]
    Lost(&'static str, io::Error),
    /// Nothing comes any more.
    #[error("the desktop is frozen: {0}")]
    Frozen(String),
    /// The operation is over, but the picture does not say so.
    #[error("{0}, although the session says that the operation is over")]
    Marker(Unreadable),
    /// The session says why it has failed.
    #[error("{0}")]
    Session(String),
    /// The picture does not show an end of what was typed.
    #[error("{0}")]
    Picture(String),
    /// The session breaks the protocol.
    #[error("the program inside the session answers what nobody asked: {0}")]
    Answer(String),
    /// The day asks for a key that there is none of.
    #[error("{0}")]
    Key(String),
}

impl Fault {
    /// What is to be done about it.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Marker(_) | Self::Session(_) | Self::Picture(_) | Self::Key(_) => FaultKind::Operation,
            Self::Protocol(_) | Self::Unreached(_) | Self::Lost(..) | Self::Frozen(_) | Self::Answer(_) => {
                FaultKind::Desktop
            }
        }
    }
}
