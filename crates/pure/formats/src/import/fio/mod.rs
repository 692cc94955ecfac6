//! fio job files (axboe/fio, HOWTO.rst).

mod draft;
mod ini;
mod options;
mod values;

use super::{Findings, ImportError, ImportedJob, MAX_JOBS, Place};
use draft::Draft;
use ini::Section;
pub use values::processors;

/// The most options that can apply to one job.
const MAX_OPTIONS: usize = 500;

/// Reads a job file. Sections named `global` set what the jobs after them begin with.
pub fn read(text: &str, findings: &mut Findings) -> Result<Vec<ImportedJob>, ImportError> {
    let mut global: Vec<ini::Setting<'_>> = Vec::new();
    let mut jobs: Vec<ImportedJob> = Vec::new();
    let mut group = 0;
    for Section { name, line, settings } in ini::sections(text, findings)? {
        if name.starts_with("global") {
            global.extend(settings);
            if global.len() > MAX_OPTIONS {
                let at = Place::line(line);
                return Err(ImportError::TooMany { at, what: "global options", most: MAX_OPTIONS });
            }
            continue;
        }
        if jobs.len() == MAX_JOBS {
            return Err(ImportError::TooMany { at: Place::line(line), what: "jobs", most: MAX_JOBS });
        }
        let mut draft = Draft::default();
        for setting in global.iter().chain(&settings) {
            options::apply(&mut draft, setting, findings);
        }
        if draft.stonewall && !jobs.is_empty() {
            group += 1;
        }
        jobs.push(draft.finish(name, Place::line(line), group, findings));
    }
    Ok(jobs)
}
