//! What a user does, and by what it is known to be done.

use serde::{Deserialize, Serialize};

/// What a user does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Starts the application.
    Start,
    /// Presses keys, such as `ctrl+s`, one after the other.
    Keys(Vec<String>),
    /// Types a text.
    Text(String),
    /// Has its window come to the front, from wherever it was put away.
    Activate,
}

/// By what it is known inside the session that an operation is over. Whatever it waits for, an application whose windows answer
/// (`_NET_WM_PING`) has to answer as well: it has then worked through all keys before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// A window of the application is there and has drawn.
    Window,
    /// Its window has drawn after the last key.
    Drawn,
    /// Its window is put away.
    Hidden,
    /// Its windows are gone.
    Gone,
    /// This file, absolute within the root, is another one than before, or has changed.
    File(String),
    /// The program that was started has ended with 0.
    Exit,
}
