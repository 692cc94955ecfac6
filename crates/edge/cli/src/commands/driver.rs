//! What the commands of drivers have in common, that of TPC-C's and those of users of other services; passwords in files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use virtbench_units::format_duration_ns;
use virtbench_users::LoadEvent;

use crate::claim::Company;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};

/// Applies a load of so many nanoseconds with a bar, which says how many `what` were completed in the last second. Also gives the
/// host's other programs since then.
pub fn with_bar<T, O>(
    load_ns: u64,
    what: &str,
    completed: fn(&T) -> u64,
    apply: impl FnOnce(&mut dyn FnMut(LoadEvent<'_, T>)) -> O,
) -> (O, Company) {
    let company = Company::new();
    let bar = progress::timer(Some(load_ns), "connecting");
    let mut since = None;
    let applied = apply(&mut |event| {
        let begun = *since.get_or_insert_with(Instant::now);
        progress::tick(&bar, begun.elapsed());
        if let LoadEvent::Second(second) = event {
            bar.set_message(format!("{} {what}/s", completed(second)));
        }
    });
    bar.finish_and_clear();
    (applied, company)
}

/// How a load ended.
pub struct Ended<'a> {
    /// What was measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// What ended it before its time.
    pub by: Option<&'a str>,
    /// Whether it was stopped.
    pub interrupted: bool,
    /// What failed.
    pub failed: u64,
    /// The same by what went wrong.
    pub error_kinds: &'a BTreeMap<String, u64>,
}

/// What was measured is printed in any case; whether it is what was asked for, the exit code says.
pub fn verdict(ended: &Ended<'_>, what: &str) -> Outcome {
    if let Some(why) = ended.by {
        let seconds = ended.elapsed_ns as f64 / 1e9;
        let message = format!(
            "the load ended after {seconds:.1} s of measuring: {why}; what was measured until then stands above"
        );
        return Err(Failure::message(Kind::Measured, message));
    }
    if ended.interrupted {
        return Err(interrupt::failure("what was measured until then was reported"));
    }
    if ended.failed > 0 {
        let kinds: Vec<String> =
            ended.error_kinds.iter().map(|(words, count)| format!("{count} x {words}")).collect();
        let message = format!("{} {what} failed: {}", ended.failed, kinds.join("; "));
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

/// The line of how long was measured, and an empty one.
pub fn write_measured(out: &mut impl Write, elapsed_ns: u64, ramp_up_ns: u64, seed: u64) -> io::Result<()> {
    let (seconds, ramp_up) = (elapsed_ns as f64 / 1e9, format_duration_ns(ramp_up_ns));
    writeln!(out, "measured  {seconds:.3} s after {ramp_up} of ramp-up, seed {seed}\n")
}

/// The line of an open loop.
pub fn write_open_loop(out: &mut impl Write, offered: u64, backlog_end: u64) -> io::Result<()> {
    writeln!(out, "open loop: {offered} offered, {backlog_end} due but not started at the end")
}

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
