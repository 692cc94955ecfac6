//! How a running daemon gets changes: a unix socket that its owner alone may use, one question a connection.
//!
//! A question is one line of JSON. The answer is a line for each step that was done, and one that ends it.

mod client;
mod server;

use serde::{Deserialize, Serialize};

use crate::admin::{Change, DiskEdit, ResizeStep, RotationEdit};
use crate::config::DiskTable;

pub use client::{ControlError, ask, ask_handing, figures};
pub use server::Control;

/// The longest question, in bytes.
const MOST_QUESTION_BYTES: usize = 64 << 10;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Another size of a disk.
    Resize(Change),
    /// Other slots or shares.
    Reslot {
        /// Of these disks.
        disks: Vec<DiskEdit>,
        /// Of all.
        rotation: RotationEdit,
    },
    /// A disk more. Its socket comes with the question, where it has one, then the new cache's log in memory, where there is a cache.
    Add(Box<DiskTable>),
    /// A disk less, with all that it holds. The new cache's log comes with the question, where there is a cache.
    Remove {
        /// Its name.
        disk: String,
    },
    /// How things stand.
    Figures,
}

/// A line of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// This much is done.
    ResizeStep(ResizeStep),
    /// How things stand, as OpenMetrics text.
    Figures(String),
    /// All is done, and the daemon goes by it.
    Done,
    /// Nothing is, unless steps came before.
    Refused {
        /// What kind of reason.
        kind: Refusal,
        /// The reason.
        why: String,
    },
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// What was asked for does not fit.
    Value,
    /// There is no such disk.
    NoDisk,
    /// Not on these devices, or not while they are served.
    Target,
    /// The cache cannot be believed.
    Damaged,
}
