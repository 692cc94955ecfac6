//! Why the server did not do something.

use std::time::Duration;

use thiserror::Error;
use virtbench_https::HttpsError;

use crate::fault::{Fault, FaultKind};

/// A call or a task that failed, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VsphereError {
    /// The address, the password or an option makes no sense.
    #[error("{0}")]
    Settings(String),
    /// Nobody is there, or the connection broke.
    #[error("cannot reach {host}: {why}; see whether the address is right and the server runs")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the system says.
        why: String,
        /// Whether the server may have had what was asked: the connection broke afterwards.
        was_sent: bool,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error(
        "cannot trust {host}: {why}; give its authority's certificate (?ca=FILE), its SHA-256 thumbprint \
         (?thumbprint=HEX) or, on a network of your own, ?verify=no"
    )]
    Tls {
        /// Who was asked.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// Something answers there, but not the API.
    #[error(
        "{host} answered {what} with HTTP status {status}; see whether the address is the API's, such as https://HOST/sdk"
    )]
    Http {
        /// Who was asked.
        host: String,
        /// What was called.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// What was answered cannot be understood.
    #[error(
        "{host} answered {what} with what cannot be read: {why}; see whether the address is the API's, such as https://HOST/sdk"
    )]
    Garbled {
        /// Who was asked.
        host: String,
        /// What was called.
        what: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// It was not done in time.
    #[error("{what} was not over within {}{}; see how busy the server is", seconds(*limit), also(last))]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What went wrong meanwhile.
        last: Option<String>,
    },
    /// It was done, but the inventory did not show it in time.
    #[error("the inventory did not show {what} within {}; see how busy the server is", seconds(*limit))]
    NotSeen {
        /// What should be seen.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server said no.
    #[error("{what}: {fault}; {}", fault.kind.advice())]
    Fault {
        /// What was called, or which task.
        what: &'static str,
        /// What it said.
        fault: Fault,
    },
}

impl From<HttpsError> for VsphereError {
    fn from(error: HttpsError) -> Self {
        match error {
            HttpsError::Settings(why) => Self::Settings(why),
            HttpsError::Unreachable { host, why, was_sent } => Self::Unreachable { host, why, was_sent },
            HttpsError::Tls { host, why } => Self::Tls { host, why },
            HttpsError::Late { host, limit } => Self::Late { what: host, limit, last: None },
        }
    }
}

/// A length for people: `90 s`, `3.5 s`.
fn seconds(length: Duration) -> String {
    let tenths = (length.as_secs_f64() * 10.0).round();
    if tenths % 10.0 == 0.0 { format!("{} s", tenths / 10.0) } else { format!("{:.1} s", tenths / 10.0) }
}

fn also(last: &Option<String>) -> String {
    last.as_ref().map(|last| format!(" (meanwhile: {last})")).unwrap_or_default()
}

impl VsphereError {
    /// The fault's kind, where the server said no.
    #[must_use]
    pub fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::Fault { fault, .. } => Some(fault.kind),
            _ => None,
        }
    }

    /// Whether the connection is at fault, and not what was asked.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Late { .. } | Self::Http { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_to_a_tenth_of_a_second() {
        let late = |ns| VsphereError::Late { what: "x".into(), limit: Duration::from_nanos(ns), last: None };
        assert!(late(3_470_960_255).to_string().starts_with("x was not over within 3.5 s;"));
        assert!(late(90_000_000_001).to_string().contains("within 90 s;"));
    }
}
