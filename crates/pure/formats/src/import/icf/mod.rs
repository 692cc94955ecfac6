//! Iometer configuration files (iometer-org/iometer: PageSetup.cpp, AccessSpecList.cpp,
//! ManagerList.cpp, Worker.cpp, ICF_ifstream.cpp).
//!
//! A section is opened by a comment line (with a leading apostrophe) and closed by an `'END` line; in
//! it, a comment line names the values on the line below. Columns are found by their names, because
//! Iometer's versions differ in which of them exist.

mod access;
mod jobs;
mod lines;
mod managers;
mod setup;

use super::{Findings, ImportError, ImportedJob, Location, Surroundings};
use lines::Lines;

/// Reads a configuration file.
pub fn read(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut lines = Lines::new(text);
    let mut setup = setup::Setup::default();
    let mut specs = Vec::new();
    let mut workers = Vec::new();
    while let Some((line, content)) = lines.next() {
        let lower = content.to_ascii_lowercase();
        if lower.starts_with("'test setup") {
            setup = setup::read(&mut lines, findings)?;
        } else if lower.starts_with("'access specifications") {
            access::read(&mut lines, &mut specs, findings)?;
        } else if lower.starts_with("'manager list") {
            managers::read(&mut lines, &mut workers, findings)?;
        } else if lower.starts_with("'results display") {
            pass_over_display(&mut lines)?;
        } else if !lower.starts_with("version") && !lower.starts_with("'version") {
            findings.ignore(
                Location::line(line),
                format!("{:?} is no section known here", lines::shorten(content)),
            );
        }
    }
    jobs::build(&setup, &specs, &workers, surroundings, findings)
}

/// Passes over what Iometer's window shows while it measures, up to the section's end.
fn pass_over_display(lines: &mut Lines<'_>) -> Result<(), ImportError> {
    while let Some((_, content)) = lines.next() {
        if lines::starts(content, "'end results display") {
            return Ok(());
        }
    }
    let why = "the file ends inside the results display".into();
    Err(ImportError::Syntax { at: Location::line(1), why })
}
