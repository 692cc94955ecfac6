//! Passwords in files, where nobody else on this machine can read them.

use std::fs;
use std::path::Path;

use crate::exit::{Failure, Kind};

/// The first line of the file named by `--password-file`.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let message = format!("--password-file: cannot read {}: {error}", path.display());
        Failure::message(Kind::Usage, message)
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
