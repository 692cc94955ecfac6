//! fio job files (axboe/fio, HOWTO.rst).

mod draft;
mod finish;
mod ini;
mod mix;
mod names;
mod options;
mod values;

use std::collections::BTreeMap;

use super::words::command_lines;
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
    let lines = ini::lines(text, surroundings, findings)?;
    jobs_of(ini::sections(&lines, findings)?, surroundings, findings)
}

/// Reads command lines of fio, one a line.
pub fn read_commands(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut all = Vec::new();
    for (line, words) in command_lines(text)? {
        let sections = ini::sections_of_command(line, &words, findings)?;
        let made = jobs_of(sections, surroundings, findings)?;
        // One command after another.
        let group = all.last().map_or(0, |job: &ImportedJob| job.group + 1);
        let before = all.len();
        all.extend(made.into_iter().map(|mut job| {
            job.group += group;
            job.schedule.after.iter_mut().for_each(|index| *index += before);
            job
        }));
        if all.len() > MAX_JOBS {
            let at = Location::line(line);
            return Err(ImportError::TooMany { at, what: "jobs", most: MAX_JOBS });
        }
    }
    Ok(all)
}

/// The jobs of these sections.
fn jobs_of(
    sections: Vec<Section<'_>>,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut global: Vec<ini::Setting<'_>> = Vec::new();
    let mut jobs: Vec<ImportedJob> = Vec::new();
    let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut group = 0;
    for Section { name, at, settings } in sections {
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
        let shown = draft.name.clone().unwrap_or_else(|| name.to_owned());
        let section = finish::Section { name, shown: &shown, at, group, made: jobs.len() };
        let mut made = draft.finish(section, surroundings, findings);
        made.iter_mut().for_each(|job| job.schedule.after.clone_from(&after));
        named.insert(shown, (jobs.len()..jobs.len() + made.len()).collect());
        jobs.append(&mut made);
    }
    Ok(jobs)
}

#[cfg(test)]
mod fio_tests;
