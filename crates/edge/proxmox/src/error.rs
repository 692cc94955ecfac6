//! Why the server did not do something: how the API, or a task, says no.

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use virtbench_https::HttpsError;

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

/// What kind of refusal, as far as what to do next differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// User, password or token is wrong.
    NotAuthenticated,
    /// The user lacks a privilege.
    Denied,
    /// The VM, snapshot, storage or node is not there.
    NotFound,
    /// A task holds the VM, or one that was interrupted.
    Locked,
    /// The VM runs, or does not, and should not.
    WrongState,
    /// High availability decides about this VM.
    Managed,
    /// A storage is full, or no memory is left.
    NoRoom,
    /// The cluster has lost its quorum: nothing can be changed.
    NoQuorum,
    /// The node does not answer the one that was asked.
    NodeAway,
    /// The server has no worker left, or wants fewer requests.
    Overloaded,
    /// This number is taken.
    AlreadyExists,
    /// This cannot be done here.
    Unsupported,
    /// An argument is wrong.
    InvalidArgument,
    /// Any other.
    Other,
}

/// Words of the server's messages, and what they say; the first that is found counts.
const WORDS: &[(&str, FaultKind)] = &[
    ("no quorum", FaultKind::NoQuorum),
    ("is locked (", FaultKind::Locked),
    ("can't lock file", FaultKind::Locked),
    ("ha resources", FaultKind::Managed),
    ("no space left", FaultKind::NoRoom),
    ("not enough", FaultKind::NoRoom),
    ("out of space", FaultKind::NoRoom),
    ("cannot allocate memory", FaultKind::NoRoom),
    ("disk quota exceeded", FaultKind::NoRoom),
    ("too many", FaultKind::Overloaded),
    ("already exists", FaultKind::AlreadyExists),
    ("already used", FaultKind::AlreadyExists),
    ("no route to host", FaultKind::NodeAway),
    ("hostname lookup", FaultKind::NodeAway),
    ("does not exist", FaultKind::NotFound),
    ("no such", FaultKind::NotFound),
    ("already running", FaultKind::WrongState),
    ("not running", FaultKind::WrongState),
    ("is running", FaultKind::WrongState),
    ("not implemented", FaultKind::Unsupported),
    ("not supported", FaultKind::Unsupported),
    ("not available", FaultKind::Unsupported),
    ("not possible", FaultKind::Unsupported),
    ("permission", FaultKind::Denied),
];

impl FaultKind {
    /// The kind of an answer with this status of HTTP, 0 for a task, and these words.
    #[must_use]
    pub fn of(status: u16, message: &str) -> Self {
        match status {
            401 => return Self::NotAuthenticated,
            403 => return Self::Denied,
            429 | 503 => return Self::Overloaded,
            595..=599 => return Self::NodeAway,
            _ => {}
        }
        let message = message.to_lowercase();
        let found = WORDS.iter().find(|(words, _)| message.contains(words)).map(|(_, kind)| *kind);
        found.unwrap_or(match status {
            400 => Self::InvalidArgument,
            404 => Self::NotFound,
            501 => Self::Unsupported,
            _ => Self::Other,
        })
    }

    /// What to do about it, as the end of a sentence.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::NotAuthenticated => {
                "see the user in the address, and the password in VIRTBENCH_PROXMOX_PASSWORD or the password's file"
            }
            Self::Denied => "give the user this privilege on the VMs and the storage, or take another user",
            Self::NotFound => "see whether somebody removed it meanwhile",
            Self::Locked => "wait for what holds it; `qm unlock VMID` frees one whose task was interrupted",
            Self::WrongState => "see what else changes this VM",
            Self::Managed => "take a VM that high availability does not manage",
            Self::NoRoom => "free some space or memory there, or use fewer VMs",
            Self::NoQuorum => "see `pvecm status`",
            Self::NodeAway => "see whether the node runs, or name another (?node=)",
            Self::Overloaded => "lower the rate",
            Self::AlreadyExists => "remove or rename what is there",
            Self::Unsupported => "leave this operation out, or take another storage (?storage=)",
            Self::InvalidArgument => "see the server's own words for what it does not take",
            Self::Other => "see the task's log on the server",
        }
    }
}

/// A refusal as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// The server's own words.
    pub message: String,
}

/// What is kept of the server's words, in characters.
const MOST: usize = 400;

impl Fault {
    /// Of an answer with this status of HTTP, 0 for a task.
    #[must_use]
    pub fn new(status: u16, message: &str) -> Self {
        let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
        let message: String = message.trim().chars().map(clean).take(MOST).collect();
        Self { kind: FaultKind::of(status, &message), message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.message.is_empty() { "refused without a reason" } else { &self.message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusals_kind_is_in_its_status_or_its_words() {
        for (status, message, kind) in [
            (401, "authentication failure", FaultKind::NotAuthenticated),
            (403, "Permission check failed (/vms/100, VM.Clone)", FaultKind::Denied),
            (500, "VM is locked (snapshot)", FaultKind::Locked),
            (0, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout", FaultKind::Locked),
            (500, "cluster not ready - no quorum?", FaultKind::NoQuorum),
            (500, "Configuration file 'nodes/a/qemu-server/1.conf' does not exist", FaultKind::NotFound),
            (0, "unable to write to storage 'x': No space left on device", FaultKind::NoRoom),
            (
                500,
                "unable to remove VM 1 - used in HA resources and purge parameter not set.",
                FaultKind::Managed,
            ),
            (0, "VM 100 already running", FaultKind::WrongState),
            (0, "snapshot feature is not available", FaultKind::Unsupported),
            (0, "Linked clone feature is not supported for 'a' (scsi0)", FaultKind::Unsupported),
            (500, "unable to create VM 100 - VM 100 already exists on node 'a'", FaultKind::AlreadyExists),
            (595, "", FaultKind::NodeAway),
            (400, "Parameter verification failed. vmid: value is wrong", FaultKind::InvalidArgument),
            (0, "command 'x' failed: exit code 1", FaultKind::Other),
        ] {
            assert_eq!(Fault::new(status, message).kind, kind, "{message}");
            assert!(!kind.advice().is_empty());
        }
        assert_eq!(Fault::new(0, "").to_string(), "refused without a reason");
        assert_eq!(Fault::new(0, &"x\n".repeat(4000)).message.len(), MOST);
    }
}
