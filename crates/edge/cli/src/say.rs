//! Lines for people: results to stdout, remarks to stderr. That nobody reads them any more is no
//! defect, which is why `println!` and `eprintln!`, which panic then, are not used.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Why stdout takes nothing any more.
static STDOUT_FAILED: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to stdout. Once that has failed nothing more is written; [`finish`] says why.
pub fn line(text: Arguments<'_>) {
    if STDOUT_FAILED.get().is_none()
        && let Err(error) = writeln!(io::stdout().lock(), "{text}")
    {
        let _ = STDOUT_FAILED.set(error);
    }
}

/// Writes a line to stderr, if anybody reads it.
pub fn remark(text: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether all lines could be written to stdout.
///
/// # Errors
/// Stdout could not be written to.
pub fn finish() -> io::Result<()> {
    match STDOUT_FAILED.get() {
        None => Ok(()),
        Some(error) => Err(io::Error::new(error.kind(), format!("cannot write to stdout: {error}"))),
    }
}

/// As `println!`, for readers that may go away.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// As `eprintln!`, for readers that may go away.
macro_rules! tell {
    ($($text:tt)*) => { $crate::say::remark(format_args!($($text)*)) };
}

pub(crate) use {say, tell};
