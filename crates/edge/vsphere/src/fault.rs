//! Faults: how the API says no.

use std::fmt;

use roxmltree::Node;

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
