//! Lines for people: results to stdout, remarks to stderr. That nobody reads them any more is no
//! defect, which is why `println!` and `eprintln!`, which panic then, are not used.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use serde_json::Value;

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

/// Writes what `--json` asks for to stdout: one object, in one line.
///
/// # Errors
/// Stdout could not be written to.
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    virtbench_formats::json::write(&mut out, value)?;
    writeln!(out)
}

/// Whether stderr is for machines: a JSON object a line.
static FOR_MACHINES: AtomicBool = AtomicBool::new(false);

/// From now on every line of stderr is a JSON object: an event of a study, or a remark.
pub fn to_machines() {
    FOR_MACHINES.store(true, Ordering::Relaxed);
}

/// Whether stderr is for machines.
pub fn is_for_machines() -> bool {
    FOR_MACHINES.load(Ordering::Relaxed)
}

/// Whether progress is told in lines.
static IN_LINES: AtomicBool = AtomicBool::new(false);

/// From now on progress is lines at intervals, and no bar.
pub fn in_lines() {
    IN_LINES.store(true, Ordering::Relaxed);
}

/// Whether progress is told in lines.
pub fn is_in_lines() -> bool {
    IN_LINES.load(Ordering::Relaxed)
}

/// Writes an event to stderr, for machines.
pub fn event(event: &Value) {
    let _ = writeln!(io::stderr().lock(), "{event}");
}

/// Remarks that wait while something is drawn on the terminal.
static WAITING: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Writes a line to stderr, if anybody reads it; while a picture is drawn there, it waits for the next frame.
pub fn remark(text: Arguments<'_>) {
    if is_for_machines() {
        return event(&serde_json::json!({ "event": "remark", "text": text.to_string() }));
    }
    match WAITING.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(waiting) => waiting.push(text.to_string()),
        None => drop(writeln!(io::stderr().lock(), "{text}")),
    }
}

/// From now on remarks wait, until [`release`].
pub fn hold() {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// The remarks that wait.
pub fn waiting() -> Vec<String> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.as_mut().map(std::mem::take).unwrap_or_default()
}

/// From now on remarks are written at once. Those that still wait are written now.
pub fn release() {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).take();
    for text in waiting.unwrap_or_default() {
        remark(format_args!("{text}"));
    }
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
