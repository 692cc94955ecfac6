//! Why a session cannot be watched.

use std::io;

use thiserror::Error;
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};

/// Why a session cannot be watched.
#[derive(Debug, Error)]
pub enum SessionError {
    /// There is no X server, or it lets nobody in.
    #[error(
        "the display {display} cannot be opened: {source}; is the X server running, and has it no access control?"
    )]
    NoDisplay {
        /// Its name.
        display: String,
        /// What happened.
        source: ConnectError,
    },
    /// The X server has gone, or refuses something that every one does.
    #[error("the X server: {0}")]
    Server(String),
    /// The X server lacks an extension.
    #[error("the X server lacks {0}: Xvnc and Xorg have it")]
    Extension(&'static str),
    /// Nobody manages windows.
    #[error("no window manager with the hints of freedesktop.org (EWMH) answers within {0} s")]
    NoManager(u64),
    /// Nobody can be listened to.
    #[error("port {port}: {source}")]
    Port {
        /// The port.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// The system does not let us wait.
    #[error("waiting: {0}")]
    Wait(#[from] io::Error),
}

macro_rules! from_server {
    ($($kind:ty),*) => { $(
        impl From<$kind> for SessionError {
            fn from(error: $kind) -> Self {
                Self::Server(error.to_string())
            }
        }
    )* };
}

from_server!(ConnectionError, ReplyError, ReplyOrIdError);
