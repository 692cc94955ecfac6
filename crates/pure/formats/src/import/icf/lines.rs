//! The lines of a configuration: comments that name, and the values below them.

use std::iter::Peekable;

use super::super::{ImportError, Location};

/// The lines of a file, trimmed, with their numbers from 1.
pub struct Lines<'a> {
    lines: Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>,
}

/// A comment and the value that it names.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The comment without its apostrophe.
    pub key: &'a str,
    /// Where the value stands, or the comment if it has none.
    pub line: usize,
    /// The value; empty where another section begins or ends instead.
    pub value: &'a str,
}

impl<'a> Lines<'a> {
    /// The lines of `text`.
    pub fn new(text: &'a str) -> Self {
        let lines = (1..).zip(text.lines().map(str::trim));
        let lines: Box<dyn Iterator<Item = (usize, &'a str)> + 'a> = Box::new(lines);
        Self { lines: lines.peekable() }
    }

    /// The next line that is not empty.
    pub fn next(&mut self) -> Option<(usize, &'a str)> {
        self.lines.find(|(_, content)| !content.is_empty())
    }

    /// The next line, if it is no comment. It may be empty: a test without a description has such a value.
    pub fn next_value(&mut self) -> Option<(usize, &'a str)> {
        self.lines.next_if(|(_, content)| !content.starts_with('\''))
    }

    /// The next comment with its value, up to and without the line that begins with `end`.
    ///
    /// # Errors
    /// A value without a comment, or the end of the file.
    pub fn pair(&mut self, end: &str) -> Result<Option<Pair<'a>>, ImportError> {
        let Some((line, content)) = self.next() else {
            let why = format!("the file ends before {end:?}");
            return Err(ImportError::Syntax { at: Location::line(1), why });
        };
        let Some(key) = content.strip_prefix('\'').map(str::trim) else {
            let why = format!("{:?} has no comment line above it that names it", shorten(content));
            return Err(ImportError::Syntax { at: Location::line(line), why });
        };
        if starts(content, end) {
            return Ok(None);
        }
        if key.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("end ")) {
            return Ok(Some(Pair { key, line, value: "" }));
        }
        // A second comment line only says more about the columns.
        while self.lines.next_if(|(_, next)| next.starts_with('\'') && !ends_or_opens(next)).is_some() {}
        let (line, value) = self.next_value().unwrap_or((line, ""));
        Ok(Some(Pair { key, line, value }))
    }
}

/// Whether a comment ends or opens a part, so that the comment above it has no value.
fn ends_or_opens(comment: &str) -> bool {
    ["'end", "'target", "'worker", "'manager", "'assigned", "'default", "'number", "'disk", "'local", "'vi "]
        .iter()
        .any(|word| starts(comment, word))
}

/// Whether `text` begins with `word`, whatever the case.
pub fn starts(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// A text fit for a message.
pub fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The values of a line by the names of their columns.
pub struct Columns<'a> {
    names: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    /// The columns that a comment names.
    pub fn new(comment: &'a str) -> Self {
        Self { names: comment.trim_start_matches('\'').split(',').map(str::trim).take(32).collect() }
    }

    /// The names.
    pub fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// The value of the column that is named so.
    pub fn get<'v>(&self, values: &'v str, name: &str) -> Option<&'v str> {
        let index = self.names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        values.split(',').nth(index).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The number in that column; nothing where there is no such column.
    ///
    /// # Errors
    /// The text is no number.
    pub fn number<T: std::str::FromStr>(
        &self,
        values: &str,
        name: &str,
        line: usize,
    ) -> Result<Option<T>, ImportError> {
        self.get(values, name).map(|text| number(text, name, line)).transpose()
    }
}

/// A number, or an error that names it.
pub fn number<T: std::str::FromStr>(text: &str, name: &str, line: usize) -> Result<T, ImportError> {
    text.trim().parse().map_err(|_| ImportError::Syntax {
        at: Location::line(line),
        why: format!("{name}: {:?} is not a number in range", shorten(text)),
    })
}
