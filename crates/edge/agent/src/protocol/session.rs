//! How an agent of Windows is told what to do as it is begun.

use serde::{Deserialize, Serialize};

/// The line with which an agent that listens names its port.
pub const LISTENS: &str = "virtbench-agent listens ";

/// The word before an order on its command line.
pub const SESSION: &str = "--session";

/// An order, which is JSON in Base64 on its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOrder {
    /// SHA-256 of the agent's program, in hexadecimal digits.
    pub digest: String,
    /// The folder to work in; a relative one begins where the session does, in the user's own folder.
    pub folder: String,
    /// The agent's name where several share the folder.
    pub name: Option<String>,
    /// Where the session's own streams do not reach the agent: it listens on loopback for one connection that begins with this word.
    pub secret: Option<String>,
}
