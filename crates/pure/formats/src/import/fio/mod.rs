//! fio job files (axboe/fio, HOWTO.rst).

mod draft;
mod expand;
mod finish;
mod ini;
mod mix;
mod names;
mod options;
mod values;

use std::collections::BTreeMap;

use super::{Findings, ImportError, ImportedJob, Location, MAX_JOBS, Surroundings};
use draft::Draft;
use ini::{MAX_OPTIONS, Section};
pub use values::processors;

/// Reads a job file. Sections named `global` set what the jobs after them begin with.
pub fn read(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut global: Vec<ini::Setting<'_>> = Vec::new();
    let mut jobs: Vec<ImportedJob> = Vec::new();
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut group = 0;
    for Section { name, line, settings } in ini::sections(text, findings)? {
        let at = Location::line(line);
        if name.starts_with("global") {
            global.extend(settings);
            if global.len() > MAX_OPTIONS {
                return Err(ImportError::TooMany { at, what: "global options", most: MAX_OPTIONS });
            }
            continue;
        }
        if jobs.len() >= MAX_JOBS {
            return Err(ImportError::TooMany { at, what: "jobs", most: MAX_JOBS });
        }
        let mut draft = Draft::default();
        for setting in global.iter().chain(&settings) {
            options::apply(&mut draft, setting, surroundings, findings);
        }
        if draft.stonewall && !jobs.is_empty() {
            group += 1;
        }
        let mut after = Vec::new();
        if let Some(other) = draft.wait_for.take() {
            match named.get(other.as_str()) {
                Some(before) => after.clone_from(before),
                None => {
                    findings.ignore(at, format!("wait_for={other:.60}: no job of that name stands before"))
                }
            }
        }
        let section = finish::Section { name, at, group, made: jobs.len() };
        let mut made = draft.finish(section, surroundings, findings);
        made.iter_mut().for_each(|job| job.schedule.after.clone_from(&after));
        named.insert(name, (jobs.len()..jobs.len() + made.len()).collect());
        jobs.append(&mut made);
    }
    Ok(jobs)
}

#[cfg(test)]
mod fio_tests;
