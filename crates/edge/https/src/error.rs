//! Why nothing was answered.

use std::time::Duration;

use thiserror::Error;

/// A request without an answer, or settings that make none possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpsError {
    /// An address, a secret or a certificate's file makes no sense.
    #[error("{0}")]
    Settings(String),
    /// Nobody is there, or the connection broke.
    #[error("cannot reach {host}: {why}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the system says.
        why: String,
        /// Whether the server may have had what was asked: the connection broke afterwards.
        was_sent: bool,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error("cannot trust {host}: {why}")]
    Tls {
        /// Who was asked.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// It was not answered in time.
    #[error("{host} did not answer within {limit:?}")]
    Late {
        /// Who was asked.
        host: String,
        /// How long it was waited for.
        limit: Duration,
    },
}
