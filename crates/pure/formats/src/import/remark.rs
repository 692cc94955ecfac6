//! What is remarked about a file, and where in it.

use std::fmt;

use serde::Serialize;

/// Where in a file something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// Line, from 1.
    pub line: usize,
    /// Which argument of a command line, from 1; the command itself is 0.
    pub argument: Option<usize>,
}

impl Location {
    pub(crate) fn line(line: usize) -> Self {
        Self { line, argument: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        self.argument.map_or(Ok(()), |argument| write!(f, ", argument {argument}"))
    }
}

/// Something a file says that was not understood, or that this engine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Where it stands.
    pub at: Location,
    /// What it is, and why it cannot be honoured.
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}
