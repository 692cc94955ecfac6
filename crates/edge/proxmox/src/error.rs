//! Why the server did not do something.

use std::time::Duration;

use thiserror::Error;
use virtbench_https::HttpsError;

use crate::fault::{Fault, FaultKind};

/// A call or a task that failed, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProxmoxError {
    /// The address, the password or an option makes no sense.
    #[error("{0}")]
    Settings(String),
    /// Nobody is there, or the connection broke.
    #[error("cannot reach {host}: {why}; see whether the address is right and pveproxy runs")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the system says.
        why: String,
        /// Whether the server may have had what was asked.
        was_sent: bool,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error(
        "cannot trust {host}: {why}; give its authority's certificate (?ca=FILE, on a node /etc/pve/pve-root-ca.pem), its SHA-256 \
         thumbprint (?thumbprint=HEX) or, on a network of your own, ?verify=no"
    )]
    Tls {
        /// Who was asked.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// What was answered cannot be understood.
    #[error(
        "{host} answered {what} with what cannot be read: {why}; see whether the address is the API's, such as HOST:8006"
    )]
    Garbled {
        /// Who was asked.
        host: String,
        /// What was called.
        what: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// It was not done in time.
    #[error("{what} was not over within {limit:.1?}; see how busy the server is")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// It was done, but the server did not show it in time.
    #[error("the server did not show {what} within {limit:.1?}; see how busy it is")]
    NotSeen {
        /// What should be seen.
        what: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server said no.
    #[error("{what}: {fault}; {}", fault.kind.advice())]
    Fault {
        /// What was called, or which task.
        what: String,
        /// What it said.
        fault: Fault,
    },
}

impl ProxmoxError {
    /// The fault's kind, where the server said no.
    #[must_use]
    pub fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::Fault { fault, .. } => Some(fault.kind),
            _ => None,
        }
    }
}

impl From<HttpsError> for ProxmoxError {
    fn from(error: HttpsError) -> Self {
        match error {
            HttpsError::Settings(why) => Self::Settings(why),
            HttpsError::Unreachable { host, why, was_sent } => Self::Unreachable { host, why, was_sent },
            HttpsError::Tls { host, why } => Self::Tls { host, why },
            HttpsError::Late { host, limit } => Self::Late { what: host, limit },
        }
    }
}
