//! Filebench's language for models of file loads (`.f`, github.com/filebench/filebench, wiki "Workload
//! model language"): what the stock personalities use of it.
//!
//! Read are `set`, `define fileset` and `file`, `define process` with threads and their flowops,
//! `eventgen`, `set mode quit`, `run`, `echo`. What is not read is named with its line and refused: a
//! model that is only nearly the one meant measures something else.

mod parser;
mod tokens;

use crate::MAX_FILE_BYTES;

pub use parser::FilebenchFile;
pub use tokens::FilebenchError;

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
