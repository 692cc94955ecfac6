//! Why a cloud did not do something.

use std::time::Duration;

use thiserror::Error;
use virtbench_https::HttpsError;

use crate::fault::{Fault, FaultKind};

/// A call or an operation that failed, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenStackError {
    /// The address, clouds.yaml or a variable makes no sense, or what they name is not there.
    #[error("{0}")]
    Settings(String),
    /// Nobody is there, or the connection broke.
    #[error(
        "cannot reach {host}: {why}; see auth_url, the region, and which interface of the catalogue can be reached from here"
    )]
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
        "cannot trust {host}: {why}; give its authority's certificate (cacert: in clouds.yaml, OS_CACERT, or ?ca=FILE) or, on a network of \
         your own, verify: false, OS_INSECURE=true or ?verify=no"
    )]
    Tls {
        /// Who was asked.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// What was answered cannot be understood.
    #[error(
        "{host} answered {what} with what cannot be read: {why}; see whether auth_url is that of Keystone, such as https://HOST:5000/v3"
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
    #[error("{what} was not over within {limit:.1?}{}; see how busy the cloud is", last_found(.last))]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// How the server was found last: its status and its task.
        last: Option<String>,
    },
    /// It was done, but the cloud did not show it in time.
    #[error("the cloud did not show {what} within {limit:.1?}; see how busy it is")]
    NotSeen {
        /// What should be seen.
        what: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The cloud said no.
    #[error("{what}: {fault}; {}", fault.kind.advice())]
    Fault {
        /// What was called.
        what: String,
        /// What it said.
        fault: Fault,
    },
}

fn last_found(last: &Option<String>) -> String {
    last.as_ref().map(|last| format!(" ({last})")).unwrap_or_default()
}

impl OpenStackError {
    /// The fault's kind, where the cloud said no.
    #[must_use]
    pub fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::Fault { fault, .. } => Some(fault.kind),
            _ => None,
        }
    }
}

impl From<HttpsError> for OpenStackError {
    fn from(error: HttpsError) -> Self {
        match error {
            HttpsError::Settings(why) => Self::Settings(why),
            HttpsError::Unreachable { host, why, was_sent } => Self::Unreachable { host, why, was_sent },
            HttpsError::Tls { host, why } => Self::Tls { host, why },
            HttpsError::Late { host, limit } => Self::Late { what: host, limit, last: None },
        }
    }
}
