//! A user's day, as a file has it.

use serde::{Deserialize, Serialize};

use crate::act::{Act, Until};
use crate::duration;

const SECOND_NS: u64 = 1_000_000_000;

/// Which limit holds for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Group {
    /// Interactive.
    A,
    /// Slow: opening, saving, compressing.
    B,
}

impl Group {
    /// Its letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// An operation of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name, unique in the application.
    pub name: String,
    /// Which limit holds for it.
    pub group: Group,
    /// What the user does.
    pub act: Act,
    /// By what it is known to be over.
    pub until: Until,
    /// Whether its application's windows have to stand still as well: it is then over with the last that they draw which is larger
    /// than a cursor.
    #[serde(default)]
    pub still: bool,
}

/// An application and what a user does with it, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Program, absolute within the root, and arguments.
    pub program: Vec<String>,
    /// The class of its windows (`WM_CLASS`, either part, without regard to case).
    pub window: String,
    /// What a user does with it.
    pub operations: Vec<Operation>,
}

/// How long users think between operations: drawn evenly between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Think {
    /// At least, in nanoseconds.
    #[serde(with = "duration")]
    pub least: u64,
    /// At most, in nanoseconds.
    #[serde(with = "duration")]
    pub most: u64,
}

/// What users are content with: 95 % of the operations of a group take no longer. The figures are those of [Platform 2014].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Group A, in nanoseconds.
    #[serde(with = "duration")]
    pub a: u64,
    /// Group B, in nanoseconds.
    #[serde(with = "duration")]
    pub b: u64,
    /// When an operation is given up, in nanoseconds.
    #[serde(with = "duration")]
    pub give_up: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { a: SECOND_NS, b: 6 * SECOND_NS, give_up: 60 * SECOND_NS }
    }
}

impl Limits {
    /// The limit of a group, in nanoseconds.
    #[must_use]
    pub fn of(&self, group: Group) -> u64 {
        match group {
            Group::A => self.a,
            Group::B => self.b,
        }
    }
}

/// A user's day: applications in an order of each user's own, all of their operations in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Day {
    /// Its name.
    pub name: String,
    /// The recipe of the desktop, where none is named.
    pub recipe: String,
    /// Between operations.
    pub think: Think,
    /// Between two keys, in nanoseconds.
    #[serde(default = "key_pause", with = "duration")]
    pub key_pause: u64,
    /// What users are content with.
    #[serde(default)]
    pub limits: Limits,
    /// What users do.
    pub applications: Vec<Application>,
}

/// Some 12 keys a second: a fast typist. Xvnc and QEMU drop none of them.
fn key_pause() -> u64 {
    80_000_000
}

impl Day {
    /// The first operation that nobody can do by keys alone: a program inside the session has to start something, or to bring it
    /// to the front.
    #[must_use]
    pub fn needs_help(&self) -> Option<(&Application, &Operation)> {
        self.operations().find(|(_, operation)| matches!(operation.act, Act::Start | Act::Activate))
    }

    /// All operations with their applications, in the order of the file. Their places are their numbers in markers.
    pub fn operations(&self) -> impl Iterator<Item = (&Application, &Operation)> {
        self.applications.iter().flat_map(|application| {
            application.operations.iter().map(move |operation| (application, operation))
        })
    }
}
