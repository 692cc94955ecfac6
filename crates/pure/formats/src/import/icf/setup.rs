//! The section TEST SETUP.

use super::super::{Findings, ImportError, Location};
use super::lines::{Lines, number, shorten};

/// What the set-up says about a run.
#[derive(Debug, Default)]
pub struct Setup {
    /// Measuring time, in nanoseconds; 0 for a run that only its user ends.
    pub time_ns: u64,
    /// Ramp-up, in nanoseconds.
    pub ramp_ns: u64,
    /// Disk workers to start where none are listed.
    pub workers: Option<u32>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// Reads the section up to its end.
pub fn read(lines: &mut Lines<'_>, findings: &mut Findings) -> Result<Setup, ImportError> {
    let mut setup = Setup::default();
    while let Some(pair) = lines.pair("'end test setup")? {
        let at = Location::line(pair.line);
        match pair.key.to_ascii_lowercase().as_str() {
            "run time" => setup.time_ns = run_time(pair.value, pair.line)?,
            key if key.starts_with("ramp up time") => {
                setup.ramp_ns = seconds(number(pair.value, "ramp up time", pair.line)?, pair.line)?;
            }
            "default disk workers to spawn" | "default workers to spawn" => {
                if pair.value.eq_ignore_ascii_case("NUMBER_OF_CPUS") {
                    findings.note("NUMBER_OF_CPUS workers were asked for: say how many there are to be");
                } else {
                    let first = pair.value.split([',', ' ', '\t']).next().unwrap_or("");
                    setup.workers =
                        Some(number(first, "default disk workers", pair.line)?).filter(|n| *n > 0);
                }
            }
            "test type" => {
                if !pair.value.eq_ignore_ascii_case("NORMAL") && pair.value != "0" {
                    let kind = shorten(pair.value);
                    findings
                        .ignore(at, format!("test type {kind}: only NORMAL is known; give each load a run"));
                }
            }
            "test description"
            | "default network workers to spawn"
            | "record results"
            | "worker cycling"
            | "disk cycling"
            | "queue depth cycling" => findings.leave_out(pair.key, pair.line),
            _ => findings.ignore(at, format!("{:?} is not known in the test set-up", shorten(pair.key))),
        }
    }
    Ok(setup)
}

/// Hours, minutes and seconds.
fn run_time(text: &str, line: usize) -> Result<u64, ImportError> {
    let parts: Vec<&str> = text.split([' ', '\t', ',']).filter(|part| !part.is_empty()).take(4).collect();
    let [hours, minutes, rest] = parts[..] else {
        let why = "a run time has hours, minutes and seconds".into();
        return Err(ImportError::Syntax { at: Location::line(line), why });
    };
    let [hours, minutes, rest]: [u32; 3] =
        [number(hours, "hours", line)?, number(minutes, "minutes", line)?, number(rest, "seconds", line)?];
    seconds(u64::from(hours) * 3600 + u64::from(minutes) * 60 + u64::from(rest), line)
}

fn seconds(seconds: u64, line: usize) -> Result<u64, ImportError> {
    seconds.checked_mul(SECOND_NS).ok_or_else(|| ImportError::Syntax {
        at: Location::line(line),
        why: format!("{seconds} s is no time anyone can wait"),
    })
}
