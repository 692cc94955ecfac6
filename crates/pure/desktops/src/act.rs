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

/// A video whose frames carry their numbers in cells ([`crate::frame_level`]), from nought on, pixel for pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// How many it has.
    pub frames: u16,
    /// Frames a second.
    pub rate: u16,
}

impl Video {
    /// How long it is, in nanoseconds.
    #[must_use]
    pub fn length_ns(self) -> u64 {
        u64::from(self.frames) * 1_000_000_000 / u64::from(self.rate.max(1))
    }
}

/// By what it is known inside the session that an operation is over. Whatever it waits for, an application whose windows answer
/// (`_NET_WM_PING`) has to answer as well: it has then worked through all keys before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// A window of the application is there and has drawn.
    Window,
    /// A window of the application has this in its title: a document that is there, or a page.
    Title(String),
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
    /// The video that was started is over. The operation's time is that to its first frame; users count which frames arrive.
    Video(Video),
}
