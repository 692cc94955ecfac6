//! What the controller says to the program inside the session, and hears from it: a line of JSON each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::day::Until;

/// The longest line that either side takes, in bytes.
pub const LONGEST_LINE: usize = 64 << 10;

/// How long nothing is drawn before what was drawn last is taken for the last, inside and by the picture. Cursors blink more slowly.
pub const STILL: Duration = Duration::from_millis(400);

/// An operation that is to be watched, or begun, inside the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Its number in the run, by which markers tell it.
    pub sequence: u16,
    /// The operation's number in the day.
    pub operation: u8,
    /// The class of the application's windows.
    pub window: String,
    /// What the session starts as the operation begins; nothing where the user does something by keys.
    pub start: Vec<String>,
    /// Whether the session brings the window to the front as the operation begins.
    pub activate: bool,
    /// How many times keys are let go until the user has done what begins the operation.
    pub keys: u32,
    /// By what it is known to be over.
    pub until: Until,
    /// Whether the windows have to stand still as well.
    pub still: bool,
    /// When it is given up, in nanoseconds.
    pub give_up_ns: u64,
}

/// What is asked of the program inside the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Watches an operation. The answer comes once it is over; the next request has to wait for it.
    Watch(Order),
    /// Ends all that was started, so that a user can begin anew. The answer has this number.
    Clear {
        /// The number.
        sequence: u16,
    },
}

/// How an operation ended, as the session sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As it should.
    Done,
    /// It did not, for this reason.
    Failed(String),
}

/// What the session says of an operation once it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The operation's number in the run.
    pub sequence: u16,
    /// How it ended.
    pub ending: Ending,
    /// How long it took by the session's own clock, from its last key or, where there is none, from its beginning, in nanoseconds. It is
    /// shown beside what the picture tells, and used for nothing.
    pub inside_ns: u64,
    /// Which marker of its end is the last one ([`Marker::revision`](crate::Marker)).
    pub revision: u16,
}
