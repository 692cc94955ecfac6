//! Why a model file cannot be used.

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::files::ModelError;

use crate::MAX_FILE_BYTES;

/// A model file that cannot be used.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum FilebenchError {
    /// It is too large.
    #[error("the file has {bytes} bytes; a model takes at most {}", format_bytes(MAX_FILE_BYTES as u64))]
    TooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// It is not a text.
    #[error("the file is not UTF-8 text")]
    NotText,
    /// A line that is not understood.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A variable was to be set that the model does not have.
    #[error("the model sets no ${0}: its variables stand at its beginning")]
    Variable(String),
    /// It can be read but makes no sense.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl FilebenchError {
    pub(super) fn syntax(line: usize, why: impl Into<String>) -> Self {
        Self::Line { line, why: why.into() }
    }
}
