//! What can be wrong with a server.

use thiserror::Error;

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
