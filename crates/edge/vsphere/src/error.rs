//! Why the server did not do something: faults, as the API says no, and what kept it from being asked.

use std::fmt;
use std::time::Duration;

use roxmltree::Node;
use thiserror::Error;
use virtbench_https::HttpsError;

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

/// What kind of fault, as far as what to do next differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// There is no session, or it has ended.
    NotAuthenticated,
    /// User or password is wrong.
    InvalidLogin,
    /// The user lacks a privilege.
    NoPermission,
    /// The VM is powered on, off or suspended, and should not be.
    InvalidPowerState,
    /// The object is in another state that forbids the call.
    InvalidState,
    /// The object is gone.
    NotFound,
    /// No space on a datastore, or no memory or processors left.
    NoRoom,
    /// Something else is done with the object.
    Busy,
    /// The server gave up waiting.
    TimedOut,
    /// The server does not know this call or cannot do it here.
    Unsupported,
    /// There is an object of this name.
    DuplicateName,
    /// An argument is wrong.
    InvalidArgument,
    /// Somebody cancelled it.
    Cancelled,
    /// Any other.
    Other,
}

impl FaultKind {
    /// The kind of a fault of this type of the API.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "NotAuthenticated" => Self::NotAuthenticated,
            "InvalidLogin" => Self::InvalidLogin,
            "NoPermission" | "RestrictedVersion" | "RestrictedByAdministrator" => Self::NoPermission,
            "InvalidPowerState" => Self::InvalidPowerState,
            "InvalidState"
            | "InvalidHostState"
            | "InvalidHostConnectionState"
            | "HostNotConnected"
            | "HostNotReachable"
            | "HostCommunication" => Self::InvalidState,
            "ManagedObjectNotFound" | "NotFound" | "FileNotFound" => Self::NotFound,
            "NoDiskSpace" | "NotEnoughStorage" => Self::NoRoom,
            name if name.starts_with("Insufficient") => Self::NoRoom,
            "TaskInProgress" | "ConcurrentAccess" | "ResourceInUse" | "FileLocked" => Self::Busy,
            "Timedout" => Self::TimedOut,
            "MethodNotFound" | "NotSupported" | "NotImplemented" | "MethodDisabled" => Self::Unsupported,
            "DuplicateName" | "AlreadyExists" | "FileAlreadyExists" => Self::DuplicateName,
            "InvalidArgument" | "InvalidRequest" | "InvalidName" | "InvalidProperty" | "InvalidType" => {
                Self::InvalidArgument
            }
            "RequestCanceled" => Self::Cancelled,
            _ => Self::Other,
        }
    }

    /// What to do about it, as the end of a sentence.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::NotAuthenticated => "the session cannot be kept: see the server's limits on sessions",
            Self::InvalidLogin => {
                "see the user in the address and the password in VIRTBENCH_VSPHERE_PASSWORD or the password's file"
            }
            Self::NoPermission => "give the user this privilege on the VMs, or take another user",
            Self::InvalidPowerState | Self::InvalidState => "see what else changes this object",
            Self::NotFound => "somebody removed it meanwhile",
            Self::NoRoom => "free some space or memory there, or use fewer VMs",
            Self::Busy => "let what else uses it end",
            Self::TimedOut => "see how busy the server is, or lower the rate",
            Self::Unsupported => "leave this operation out",
            Self::DuplicateName => "remove or rename the object of this name",
            Self::InvalidArgument => "see the server's log for what it does not take",
            Self::Cancelled => "see who cancels tasks on this server",
            Self::Other => "see the server's log",
        }
    }
}

/// A fault as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// Its type in the API.
    pub name: String,
    /// The server's own words.
    pub message: String,
    /// What it says besides: a privilege, a state, a datastore, an object.
    pub detail: Option<String>,
}

/// What is kept of the server's words, in characters.
const MOST: usize = 400;

impl Fault {
    /// A fault of this type.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self { kind: FaultKind::of(name), name: short(name), message: short(message.trim()), detail: None }
    }

    /// Reads `Fault` of a SOAP body.
    pub(crate) fn of_body(node: Node<'_, '_>) -> Self {
        let child = |name: &str| node.children().find(|child| child.tag_name().name() == name);
        let message = child("faultstring").and_then(|text| text.text()).unwrap_or("");
        let detail = child("detail").and_then(|detail| detail.first_element_child());
        detail.map_or_else(|| Self::new("", message), |detail| Self::read(detail, message))
    }

    /// Reads a `LocalizedMethodFault`, such as a task's error.
    pub(crate) fn of_task(node: Node<'_, '_>) -> Self {
        let child = |name: &str| node.children().find(|child| child.tag_name().name() == name);
        let message = child("localizedMessage").and_then(|text| text.text()).unwrap_or("");
        child("fault").map_or_else(|| Self::new("", message), |fault| Self::read(fault, message))
    }

    fn read(node: Node<'_, '_>, message: &str) -> Self {
        let typed = node.attributes().find(|attribute| attribute.name() == "type").map(|kind| kind.value());
        let element = node.tag_name().name();
        let name = typed.unwrap_or_else(|| element.strip_suffix("Fault").unwrap_or(element));
        let name = name.rsplit(':').next().unwrap_or(name);
        let telling = [
            "privilegeId",
            "existingState",
            "datastore",
            "invalidProperty",
            "name",
            "obj",
            "object",
            "reason",
        ];
        let detail = telling.iter().find_map(|wanted| {
            let found = node.children().find(|child| child.tag_name().name() == *wanted)?;
            Some(short(found.text()?.trim())).filter(|text| !text.is_empty())
        });
        Self { detail, ..Self::new(name, message) }
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MOST).collect()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "a fault without a type" } else { &self.name };
        f.write_str(name)?;
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        if !self.message.is_empty() && self.message != self.name {
            write!(f, ", {:?}", self.message)?;
        }
        Ok(())
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
