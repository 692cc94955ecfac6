//! The days that come with the project.

use crate::day::{Day, DayError};

/// A day that comes with the project.
#[derive(Debug, Clone, Copy)]
pub struct Supplied {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl Supplied {
    /// What is in its file.
    ///
    /// # Errors
    /// None of a file that comes with the project; a test reads them all.
    pub fn day(&self) -> Result<Day, DayError> {
        Day::parse(self.text)
    }
}

/// All of them, by name.
pub const ALL: [Supplied; 3] = [
    Supplied { name: "office", text: include_str!("../days/office.toml") },
    Supplied { name: "small", text: include_str!("../days/small.toml") },
    Supplied { name: "typing", text: include_str!("../days/typing.toml") },
];

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<Supplied> {
    ALL.into_iter().find(|supplied| supplied.name == name)
}
