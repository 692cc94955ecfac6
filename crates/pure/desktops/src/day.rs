//! A user's day, as a file has it: what is done, how it is read, and whether it is valid.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

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

/// What a marker can number.
const MOST_OPERATIONS: usize = 255;

const LONGEST_NS: u64 = 3_600_000_000_000;

const LONGEST_TEXT: usize = 4096;

/// Users ask for a hundred pictures a second at most: of more frames they would miss some that are there.
const MOST_RATE: u16 = 60;

pub(crate) fn check(day: &Day) -> Result<(), DayError> {
    ensure(day.think.least <= day.think.most && day.think.most <= LONGEST_NS, "think", || {
        "least is at most most, and most is an hour at most".into()
    })?;
    ensure(day.key_pause <= LONGEST_NS, "key_pause", || "an hour at most".into())?;
    for (field, ns) in
        [("limits.a", day.limits.a), ("limits.b", day.limits.b), ("limits.give_up", day.limits.give_up)]
    {
        ensure((1..=LONGEST_NS).contains(&ns), field, || "more than nothing, an hour at most".into())?;
    }
    ensure(day.limits.give_up >= day.limits.a.max(day.limits.b), "limits.give_up", || {
        "at least as long as the other limits".into()
    })?;
    let count = day.operations().count();
    ensure((1..=MOST_OPERATIONS).contains(&count), "applications", || {
        format!("{count} operations: from one to {MOST_OPERATIONS}")
    })?;
    let mut names = BTreeSet::new();
    for one in &day.applications {
        ensure(names.insert(&one.name), &format!("applications.{}", one.name), || {
            "it is there twice".into()
        })?;
        application(one)?;
    }
    Ok(())
}

fn application(application: &Application) -> Result<(), DayError> {
    let at = format!("applications.{}", application.name);
    let field = |part: &str| format!("{at}.{part}");
    name(&at, &application.name)?;
    let program = application.program.first().map_or("", String::as_str);
    absolute(&field("program"), program)?;
    ensure(!application.window.trim().is_empty(), &field("window"), || {
        "empty: the class of its windows, as xprop shows it".into()
    })?;
    let mut names = BTreeSet::new();
    for one in &application.operations {
        let at = field(&format!("operations.{}", one.name));
        ensure(names.insert(&one.name), &at, || "it is there twice".into())?;
        operation(&at, one)?;
    }
    Ok(())
}

fn operation(at: &str, operation: &Operation) -> Result<(), DayError> {
    name(at, &operation.name)?;
    match &operation.act {
        Act::Keys(keys) => {
            ensure(
                !keys.is_empty() && keys.iter().all(|key| !key.is_empty()),
                &format!("{at}.act.keys"),
                || "at least one key, such as ctrl+s".into(),
            )?;
        }
        Act::Text(text) => {
            ensure((1..=LONGEST_TEXT).contains(&text.len()), &format!("{at}.act.text"), || {
                format!("from one to {LONGEST_TEXT} bytes")
            })?
        }
        Act::Start | Act::Activate => {}
    }
    let has_window =
        matches!(operation.until, Until::Window | Until::Title(_) | Until::Drawn | Until::File(_));
    ensure(!operation.still || has_window, &format!("{at}.still"), || {
        "still is for operations that end with a window, its title, what it draws, or a file".into()
    })?;
    let starts = operation.act == Act::Start;
    match &operation.until {
        Until::File(path) => absolute(&format!("{at}.until.file"), path),
        Until::Title(text) => {
            let fits = (1..=LONGEST_TEXT).contains(&text.len()) && !text.contains(char::is_control);
            ensure(fits, &format!("{at}.until.title"), || {
                format!("from one to {LONGEST_TEXT} bytes of a title")
            })
        }
        Until::Video(video) => {
            let at = format!("{at}.until.video");
            ensure(starts, &at, || "video is for operations that start a player".into())?;
            ensure(video.frames >= 2, &format!("{at}.frames"), || "two at least".into())?;
            ensure((1..=MOST_RATE).contains(&video.rate), &format!("{at}.rate"), || {
                format!("from one to {MOST_RATE} frames a second")
            })?;
            ensure(video.length_ns() <= LONGEST_NS, &format!("{at}.frames"), || "an hour at most".into())
        }
        Until::Exit => ensure(starts, &format!("{at}.until"), || "exit is for operations that start".into()),
        _ => Ok(()),
    }
}

fn name(field: &str, name: &str) -> Result<(), DayError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=40).contains(&name.len()) && name.chars().all(plain);
    ensure(fits, field, || format!("{name:?}: up to 40 of a-z, 0-9 and -"))
}

fn absolute(field: &str, path: &str) -> Result<(), DayError> {
    let inside = path.starts_with('/') && !path.contains(char::is_control);
    ensure(inside, field, || format!("{path:?}: a path within the root, beginning with /"))
}

fn ensure(holds: bool, field: &str, why: impl FnOnce() -> String) -> Result<(), DayError> {
    if holds { Ok(()) } else { Err(DayError::Value { field: field.into(), why: why() }) }
}

impl Day {
    /// Reads a day.
    ///
    /// # Errors
    /// It is no TOML, or invalid; the error names the field.
    pub fn parse(text: &str) -> Result<Self, DayError> {
        let day = toml::from_str(text)?;
        check(&day)?;
        Ok(day)
    }
}

/// What can be wrong with a day.
#[derive(Debug, Error)]
pub enum DayError {
    /// It is no TOML, or has fields that no day has.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A field has an invalid value.
    #[error("{field}: {why}")]
    Value {
        /// Which field.
        field: String,
        /// What is wrong, and what would do.
        why: String,
    },
}
