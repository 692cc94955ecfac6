//! Filebench's language for models of file loads (`.f`, github.com/filebench/filebench, wiki "Workload
//! model language"): what the stock personalities use of it.
//!
//! Read are `set`, `define fileset` and `file`, `define process` with threads and their flowops,
//! `eventgen`, `set mode quit`, `run`, `echo`. What is not read is named with its line and refused: a
//! model that is only nearly the one meant measures something else.

mod attributes;
mod parser;
mod steps;
mod tokens;
mod values;

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::files::{FileModel, ModelError};

use crate::MAX_FILE_BYTES;

/// A model, and what else its file says.
#[derive(Debug, Clone, PartialEq)]
pub struct FilebenchFile {
    /// The model.
    pub model: FileModel,
    /// How long it asks to be run, in nanoseconds.
    pub run_ns: Option<u64>,
    /// What was left out because it does not change the load, and what differs from Filebench.
    pub notes: Vec<String>,
}

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
    fn syntax(line: usize, why: impl Into<String>) -> Self {
        Self::Line { line, why: why.into() }
    }
}

/// Reads a model. Its variables take the values of `variables` instead of those in the file.
///
/// # Errors
/// The first thing that is not understood, with its line; or the model makes no sense.
pub fn read_filebench(
    name: &str,
    bytes: &[u8],
    variables: &[(String, String)],
) -> Result<FilebenchFile, FilebenchError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(FilebenchError::TooLarge { bytes: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| FilebenchError::NotText)?;
    let file = parser::Parser::new(tokens::tokens(text)?, variables).read(name)?;
    file.model.validate()?;
    Ok(file)
}

#[cfg(test)]
#[path = "filebench_tests.rs"]
mod tests;
