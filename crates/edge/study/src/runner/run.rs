//! One run of a study: what is asked for, where it goes, how it begins, and how it ends.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use virtbench_lab::{crossing_cost, host_facts};
use virtbench_record::{Plan, Provenance, RUN_FORMAT, Record};
use virtbench_runs::{FolderError, RunFolder, read_provenance};

use crate::runner::event::{Estimate, Event, Observer};
use crate::study_error::StudyError;

/// What came of measuring in a run whose folder stays: a failure is told after what was measured.
pub type RunEnd = Result<(), StudyError>;

/// Where a run goes, and who watches it.
pub struct Run<'a> {
    /// The run folder.
    pub out: &'a Path,
    /// Whether to go on with the run in it.
    pub resume: bool,
    /// The command line, for the record; empty where there is none.
    pub command: Vec<String>,
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what happens.
    pub observer: &'a mut dyn Observer,
}

impl<'a> Run<'a> {
    /// What `run.json` says at the beginning of a run whose test disks lie in `disks`.
    pub(crate) fn provenance(&self, plan: Plan, disks: &Path) -> Provenance {
        new_provenance(plan, self.command.clone(), disks)
    }

    /// Opens the run folder, for a new run or to go on with one.
    ///
    /// # Errors
    /// As [`RunFolder::create`] and [`RunFolder::resume`].
    pub(crate) fn open<R: Record>(&mut self, provenance: Provenance) -> Result<RunFolder<R>, FolderError> {
        let folder = if self.resume {
            RunFolder::resume(self.out, &provenance)
        } else {
            RunFolder::create(self.out, provenance)
        }?;
        self.observer.event(Event::Opened(folder.path()));
        Ok(folder)
    }

    /// What the run that is resumed was about, if one is.
    pub(crate) fn begun(&self) -> Option<Provenance> {
        read_provenance(self.out).ok().filter(|_| self.resume)
    }

    /// Says what a user would like to know.
    pub(crate) fn remark(&mut self, what: &str) {
        self.observer.event(Event::Remark(what));
    }

    /// The folder for the test disks: the one asked for, or that of the run.
    pub(crate) fn disks_folder<'f>(&self, asked: Option<&'f Path>) -> &'f Path
    where
        'a: 'f,
    {
        asked.unwrap_or(self.out)
    }

    /// The name of the run, for its test disks.
    #[must_use]
    pub fn name(&self) -> String {
        run_name(self.out)
    }

    /// Ends measuring. Where it failed before the first result, and not because it was to stop, nothing is left of the run.
    ///
    /// # Errors
    /// That failure. Any other is the answer.
    pub(crate) fn end<R: Record>(
        &mut self,
        mut folder: RunFolder<R>,
        measured: Result<(), StudyError>,
    ) -> Result<RunEnd, StudyError> {
        let notes = self.observer.notes();
        if notes.iter().any(|note| !folder.provenance().notes.contains(note)) {
            folder.amend(|provenance| provenance.add_notes(notes))?;
        }
        match measured {
            Err(error) if !error.is_stopped() && folder.abandon() => Err(error),
            measured => Ok(measured),
        }
    }
}

/// The name of a run folder, the same before it is made and afterwards, and however its path is written: what a killed run left is
/// found by it.
fn run_name(out: &Path) -> String {
    let made = out.canonicalize().ok();
    let whole = made.or_else(|| std::path::absolute(out).ok()).unwrap_or_else(|| out.to_owned());
    whole.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

/// What `run.json` says at the beginning of a run by `command` whose test disks lie in `disks`.
#[must_use]
pub fn new_provenance(plan: Plan, command: Vec<String>, disks: &Path) -> Provenance {
    Provenance {
        format: RUN_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        working_folder: std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned()),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        host: host_facts(existing_ancestor(disks)),
        crossing: Some(crossing_cost()),
        plan,
        guest: None,
        other_guests: Vec::new(),
        setups: Vec::new(),
        machines: Vec::new(),
        appliances: Vec::new(),
        idle: Vec::new(),
        notes: Vec::new(),
    }
}

/// The folder itself, or the nearest one above it that exists: its storage is the same.
fn existing_ancestor(folder: &Path) -> &Path {
    let exists = |folder: &&Path| folder.exists();
    folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()).find(exists).unwrap_or(Path::new("."))
}

/// The options of a study. The command reads them from its arguments; from Rust they are written down.
pub trait Experiment {
    /// The study's name on the command line.
    const NAME: &'static str;

    /// What is measured, and about how long that takes. Nothing is looked for.
    fn estimate(&self) -> Estimate;

    /// Finds and builds what the study needs, and measures what is missing in the run folder.
    ///
    /// # Errors
    /// Something is missing or impossible, or it failed before anything was measured. Any other failure is the answer, and the folder
    /// holds what was measured until then.
    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_name_before_its_folder_is_made_and_afterwards() {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("first");
        let written = [out.clone(), temp.path().join("./first"), temp.path().join("first/")];
        let before: Vec<String> = written.iter().map(|out| run_name(out)).collect();
        assert_eq!(before, ["first", "first", "first"]);
        std::fs::create_dir(&out).unwrap();
        assert_eq!(written.map(|out| run_name(&out)), ["first", "first", "first"]);
        assert_eq!(run_name(Path::new("/")), "run");
    }
}
