//! A run of predictions: whatever is missing is measured natively, predicted, and only then tried in the VM.
//!
//! Beside its trials it keeps costs, profiles, and what applications begin with. Each is made
//! under a name that begins with a point, and gets its own only when it is whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_formats::read_profile;
use virtbench_lab::run_command;
use virtbench_model::predict::PredictionMethod;
use virtbench_model::predict::trials::{Outcome, trial};
use virtbench_record::{Case, Costs, Plan, PredictionsPlan, Profile, Provenance, Sourced, Trial};
use virtbench_runs::{FolderError, LoadedRun, RunFolder, load_run, write_whole};

use super::basis::Basis;
use super::error::ApplicationsError;
use super::trials::TrialSides;
use crate::runner::event::Event;
use crate::runner::progress::Progress;

/// How long the parts of a run take about, as multiples of one another: the costs, the references of a trial, a case
/// natively, and in the VM.
const PARTS: [u64; 4] = [60, 12, 3, 9];

/// What of a folder's plan has not been tried yet.
struct MissingTrial {
    /// Its number, from 1.
    number: u32,
    /// Each application, with what it is to be predicted for.
    cases: Vec<(Case, Vec<Option<String>>)>,
}

impl MissingTrial {
    /// How many applications, and how many predictions.
    fn counts(&self) -> [u64; 2] {
        let predictions = self.cases.iter().map(|(_, subjects)| subjects.len() as u64).sum();
        [self.cases.len() as u64, predictions]
    }
}

/// What of a folder's plan has not been tried yet, trial by trial.
fn missing_trials(plan: &PredictionsPlan, trials: &[Trial]) -> Vec<MissingTrial> {
    let is_done = |case: &Case, subject: Option<&str>, number: u32| {
        let is_it =
            |one: &Trial| one.case == case.name && one.trial == number && one.storage.as_deref() == subject;
        trials.iter().any(is_it)
    };
    let missing = |number: u32| {
        let of_case = |case: &Case| {
            let subjects = plan.subjects().filter(|subject| !is_done(case, *subject, number));
            (case.clone(), subjects.map(|subject| subject.map(str::to_owned)).collect::<Vec<_>>())
        };
        let cases = plan.cases.iter().map(of_case).filter(|(_, subjects)| !subjects.is_empty()).collect();
        MissingTrial { number, cases }
    };
    (1..=plan.trials).map(missing).filter(|trial| !trial.cases.is_empty()).collect()
}

/// Whether every trial of a run's plan was made.
pub(super) fn is_whole(plan: &PredictionsPlan, trials: &[Trial]) -> bool {
    missing_trials(plan, trials).is_empty()
}

/// The applications of a run's plan that no trial is of, by what they were to be predicted for where there are several.
#[must_use]
pub fn untried(provenance: &Provenance, trials: &[Trial]) -> Vec<String> {
    let Some(plan) = provenance.plan.predictions() else { return Vec::new() };
    let of_case = |case: &Case| {
        let tried = |subject: &Option<&str>| {
            trials.iter().any(|trial| trial.case == case.name && trial.storage.as_deref() == *subject)
        };
        let missing: Vec<Option<&str>> = plan.subjects().filter(|subject| !tried(subject)).collect();
        let name = |subject: &Option<&str>| match subject {
            Some(storage) if missing.len() < plan.subjects().count() => format!("{} on {storage}", case.name),
            _ => case.name.clone(),
        };
        let mut names: Vec<String> = missing.iter().map(name).collect();
        names.dedup();
        names
    };
    plan.cases.iter().flat_map(of_case).collect()
}

/// Tries whatever of the folder's plan is missing, in a loop of its own and not the runner's: a case that fails leaves a note and no
/// record, and one profile is for several, so that a record is not one step. `brought` are costs that were measured before; without them they
/// are measured here. A case that fails is left out with a note, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was tried until then stays.
pub(super) fn run_predictions(
    folder: &mut RunFolder<Trial>,
    sides: &mut dyn TrialSides,
    brought: Option<&Costs>,
    progress: &mut Progress<'_>,
) -> Result<(), ApplicationsError> {
    let Some(plan) = folder.provenance().plan.predictions().cloned() else { return Ok(()) };
    let kept = Kept::new(folder.path());
    kept.sweep();
    let missing = missing_trials(&plan, folder.records());
    if missing.is_empty() {
        return Ok(());
    }
    let mut course = TrialsDone::new(&plan, &missing);
    course.tell(progress);
    let (first, mut is_new) = basis(&kept, &plan, sides, brought, progress)?;
    // Of costs that are measured here both sides are measured in turn, and what one is as a multiple of the other stays.
    let is_renewed = brought.is_some() || !plan.storages.is_empty();
    course.go_on(PARTS[0], progress);
    for trial in &missing {
        progress.check()?;
        let renews = is_renewed && !is_new;
        let basis = basis_at(&kept, &plan, sides, (&first, renews), trial.number, progress)?;
        is_new = false;
        course.go_on(PARTS[1], progress);
        let mut sitting = TrialRun {
            folder,
            sides,
            kept: &kept,
            plan: &plan,
            number: trial.number,
            basis: &basis,
            course: &mut course,
        };
        sitting.go(&trial.cases, progress)?;
    }
    Ok(())
}

/// How far a run is.
struct TrialsDone {
    done: u64,
    total: u64,
}

impl TrialsDone {
    fn new(plan: &PredictionsPlan, missing: &[MissingTrial]) -> Self {
        let of = |trials: u64, [cases, predictions]: [u64; 2]| {
            PARTS[0] + trials * PARTS[1] + cases * PARTS[2] + predictions * PARTS[3]
        };
        let (trials, cases) = (u64::from(plan.trials), plan.cases.len() as u64);
        let total = of(trials, [trials * cases, trials * cases * plan.subjects().count() as u64]);
        let counts = missing.iter().map(MissingTrial::counts);
        let left = counts.fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]]);
        Self { done: total - of(missing.len() as u64, left), total }
    }

    fn tell(&self, progress: &mut Progress<'_>) {
        progress.observer.event(Event::Done { done: self.done, total: self.total });
    }

    fn go_on(&mut self, parts: u64, progress: &mut Progress<'_>) {
        self.done += parts;
        self.tell(progress);
    }
}

/// That of the folder; else costs that were brought, else what is measured now; and whether it was.
fn basis(
    kept: &Kept,
    plan: &PredictionsPlan,
    sides: &mut dyn TrialSides,
    brought: Option<&Costs>,
    progress: &mut Progress<'_>,
) -> Result<(Basis, bool), ApplicationsError> {
    if let Some(known) = kept.basis(plan, None)? {
        return Ok((known, false));
    }
    let basis = match brought {
        Some(brought) => Basis::Costs(Box::new(brought.clone())),
        None => sides.basis(progress)?,
    };
    kept.keep_basis(plan, None, &basis)?;
    Ok((basis, brought.is_none()))
}

/// The same as it is at this trial: what of it changes within minutes measured once more, where it `renews`.
fn basis_at(
    kept: &Kept,
    plan: &PredictionsPlan,
    sides: &mut dyn TrialSides,
    (basis, renews): (&Basis, bool),
    number: u32,
    progress: &mut Progress<'_>,
) -> Result<Basis, ApplicationsError> {
    if let Some(known) = kept.basis(plan, Some(number))? {
        return Ok(known);
    }
    let mut now = basis.clone();
    if renews {
        sides.renew(&mut now, progress)?;
    }
    kept.keep_basis(plan, Some(number), &now)?;
    Ok(now)
}

/// One trial of several cases.
struct TrialRun<'a> {
    folder: &'a mut RunFolder<Trial>,
    sides: &'a mut dyn TrialSides,
    kept: &'a Kept,
    plan: &'a PredictionsPlan,
    number: u32,
    basis: &'a Basis,
    course: &'a mut TrialsDone,
}

impl TrialRun<'_> {
    fn go(
        &mut self,
        cases: &[(Case, Vec<Option<String>>)],
        progress: &mut Progress<'_>,
    ) -> Result<(), ApplicationsError> {
        let reference = match self.plan.reference() {
            "native" => "natively".to_owned(),
            storage => format!("on {storage}"),
        };
        // One after the other: what a machine does moves within minutes, and both sides of a case are to be measured on the same one.
        for (case, subjects) in cases {
            progress.check()?;
            progress.doing(&format!("{} {reference}, trial {}", case.name, self.number));
            let profile = match self.profile(case, progress) {
                Ok(profile) => profile,
                Err(error) => {
                    self.failed(case, None, error, progress)?;
                    self.course.go_on(PARTS[2] + PARTS[3] * subjects.len() as u64, progress);
                    continue;
                }
            };
            self.course.go_on(PARTS[2], progress);
            for subject in subjects {
                self.try_on(case, subject.as_deref(), &profile, progress)?;
                self.course.go_on(PARTS[3], progress);
            }
        }
        Ok(())
    }

    fn try_on(
        &mut self,
        case: &Case,
        subject: Option<&str>,
        profile: &Profile,
        progress: &mut Progress<'_>,
    ) -> Result<(), ApplicationsError> {
        progress.check()?;
        let place = subject.map_or_else(|| "in the VM".to_owned(), |storage| format!("on {storage}"));
        progress.doing(&format!("{} {place}, trial {}", case.name, self.number));
        match self.try_one(case, subject, profile, progress) {
            Ok(trial) => self.keep(trial, progress),
            Err(error) => self.failed(case, subject, error, progress),
        }
    }

    fn profile(&mut self, case: &Case, progress: &mut Progress<'_>) -> Result<Profile, ApplicationsError> {
        if let Some(known) = self.kept.profile(&case.name, self.number)? {
            return Ok(known);
        }
        // Prepared once, copied for each trial and onto each VM's disk.
        let prepared = self.kept.prepared(case, progress.stop)?;
        let profile = self.sides.profile(case, &prepared, self.plan.runs, progress)?;
        self.kept.keep_profile(&case.name, self.number, &profile)?;
        Ok(profile)
    }

    fn try_one(
        &mut self,
        case: &Case,
        subject: Option<&str>,
        profile: &Profile,
        progress: &mut Progress<'_>,
    ) -> Result<Trial, ApplicationsError> {
        // Before anything is known of the truth.
        let prediction = self.basis.predict(self.plan, profile, subject, self.number)?;
        let prepared = self.kept.prepared(case, progress.stop)?;
        let verified = self.sides.verify(case, profile, subject, &prepared, self.plan.runs, progress)?;
        if self.folder.provenance().guest.is_none() {
            self.folder.amend(|provenance| provenance.guest = verified.guest)?;
        }
        let percent = |figure: &Sourced<f64>| figure.value().copied();
        let in_turn = verified.reference.map(|reference| reference / profile.capacity().value);
        let outcome = Outcome { capacity: verified.capacity, in_turn };
        Ok(Trial {
            machine_percent: verified.machine_percent,
            reference_percent: percent(&profile.cpu_user_percent)
                .zip(percent(&profile.cpu_system_percent))
                .map(|(user, system)| [user, system]),
            reference_host: profile.host_use.clone(),
            machine_host: verified.host,
            ..trial(&case.name, subject, self.number, &prediction, outcome)
        })
    }

    fn keep(&mut self, trial: Trial, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        let begins =
            [None, trial.storage.as_deref()].map(|subject| failure_note(&trial.case, subject, trial.trial));
        self.folder.add(trial)?;
        // What failed at first and then did not is no gap.
        let is_over = |note: &String| begins.iter().any(|begins| note.starts_with(begins));
        if self.folder.provenance().notes.iter().any(is_over) {
            self.folder.amend(|provenance| provenance.notes.retain(|note| !is_over(note)))?;
        }
        if let Some(trial) = self.folder.records().last() {
            progress.observer.event(Event::Tried(trial));
        }
        Ok(())
    }

    /// Notes that a trial failed, if the others may fare better.
    fn failed(
        &mut self,
        case: &Case,
        subject: Option<&str>,
        error: ApplicationsError,
        progress: &mut Progress<'_>,
    ) -> Result<(), ApplicationsError> {
        if !error.is_of_one_application() {
            return Err(error);
        }
        let begins = failure_note(&case.name, subject, self.number);
        let note = format!("{begins}{error}");
        progress.remark(&note);
        self.folder.amend(|provenance| {
            provenance.notes.retain(|note| !note.starts_with(&begins));
            provenance.notes.push(note);
        })?;
        Ok(())
    }
}

/// How the note of a failed trial begins.
fn failure_note(case: &str, subject: Option<&str>, number: u32) -> String {
    let on = subject.map_or_else(String::new, |storage| format!(" on {storage}"));
    format!("Trial {number} of {case}{on} failed: ")
}

/// A run with its trials predicted again from the kept profiles and costs, by `method` where one is given. Nothing is
/// run, and the folder is left as it is.
///
/// # Errors
/// The folder holds no run of predictions, or a file of it is damaged or missing.
pub fn predict_again(
    path: &Path,
    method: Option<PredictionMethod>,
) -> Result<LoadedRun<Vec<Trial>>, ApplicationsError> {
    let mut run: LoadedRun<Vec<Trial>> = load_run(path)?;
    let kept = Kept::new(path);
    let no_run = || ApplicationsError::Folder(FolderError::NoRun(path.to_owned()));
    let mut plan = run.provenance.plan.predictions().cloned().ok_or_else(no_run)?;
    plan.method = method.map(|method| method.name().to_owned()).or(plan.method);
    for one in &mut run.records {
        let lost = |what: &str| {
            ApplicationsError::Measured(
                format!("{what} of {} at trial {} is gone", one.case, one.trial).into(),
            )
        };
        let profile = kept.profile(&one.case, one.trial)?.ok_or_else(|| lost("the profile"))?;
        let then = match kept.basis(&plan, Some(one.trial))? {
            None => kept.basis(&plan, None)?,
            then => then,
        };
        let then = then.ok_or_else(|| lost(&format!("{}.json", Basis::file(&plan))))?;
        let again = then.predict(&plan, &profile, one.storage.as_deref(), one.trial)?;
        let outcome = Outcome { capacity: one.truth, in_turn: one.in_turn };
        *one = Trial {
            machine_percent: one.machine_percent,
            reference_percent: one.reference_percent,
            reference_host: one.reference_host.take(),
            machine_host: one.machine_host.take(),
            ..trial(&one.case, one.storage.as_deref(), one.trial, &again, outcome)
        };
    }
    run.provenance.plan = Plan::Predictions(plan);
    Ok(run)
}

/// How long the script of a case may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);

/// What a killed run leaves of its machines, by how the names begin.
const LEFTOVERS: [&str; 3] = ["virtbench-vm-", "virtbench-native-", "virtbench-references-"];

/// The files and folders beside the results in a run folder.
#[derive(Debug, Clone)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// What predictions are made from as it was at a trial, or at first where none is said; nothing before that.
    fn basis(&self, plan: &PredictionsPlan, trial: Option<u32>) -> Result<Option<Basis>, ApplicationsError> {
        let path = self.basis_path(plan, trial);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        Basis::parse(plan, &bytes).map(Some).map_err(|why| damaged(&path, &why))
    }

    fn keep_basis(
        &self,
        plan: &PredictionsPlan,
        trial: Option<u32>,
        basis: &Basis,
    ) -> Result<(), ApplicationsError> {
        let path = self.basis_path(plan, trial);
        match basis {
            Basis::Costs(costs) => write_whole(&path, costs)?,
            Basis::Storages(storages) => write_whole(&path, storages)?,
        }
        Ok(())
    }

    fn basis_path(&self, plan: &PredictionsPlan, trial: Option<u32>) -> PathBuf {
        let number = trial.map_or_else(String::new, |trial| format!("-{trial}"));
        self.0.join(format!("{}{number}.json", Basis::file(plan)))
    }

    /// The profile of a case at a trial.
    pub(super) fn profile(&self, case: &str, trial: u32) -> Result<Option<Profile>, ApplicationsError> {
        let path = self.profile_path(case, trial);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        read_profile(&bytes).map(Some).map_err(|error| damaged(&path, &error.to_string()))
    }

    pub(super) fn keep_profile(
        &self,
        case: &str,
        trial: u32,
        profile: &Profile,
    ) -> Result<(), ApplicationsError> {
        let path = self.profile_path(case, trial);
        make_folder(&self.0.join("profiles"))?;
        Ok(write_whole(&path, profile)?)
    }

    fn profile_path(&self, case: &str, trial: u32) -> PathBuf {
        self.0.join("profiles").join(format!("{case}-{trial}.json"))
    }

    /// What a case begins with: made by its script, once and wholly.
    pub(super) fn prepared(&self, case: &Case, stop: &AtomicBool) -> Result<PathBuf, ApplicationsError> {
        let all = self.0.join("prepared");
        let whole = all.join(&case.name);
        if whole.exists() {
            return Ok(whole);
        }
        let half = all.join(format!(".{}.new", case.name));
        remove(&half)?;
        make_folder(&half)?;
        if let Some(script) = &case.prepare {
            let mut command = Command::new("sh");
            command.args(["-ec", script]).current_dir(&half);
            let what = format!("the script that prepares {}", case.name);
            if let Err(error) = run_command(command, &what, PREPARE_LIMIT, stop) {
                remove(&half)?;
                return Err(error.into());
            }
        }
        let finish = || -> io::Result<()> {
            rustix::fs::syncfs(File::open(&half)?)?;
            fs::rename(&half, &whole)?;
            File::open(&all)?.sync_all()
        };
        finish().map_err(|source| folder_error("keep", &whole, source))?;
        Ok(whole)
    }

    /// Removes what a killed run has left of its machines.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if LEFTOVERS.iter().any(|start| name.to_string_lossy().starts_with(start)) {
                let _ = remove(&entry.path());
            }
        }
    }
}

fn folder_error(action: &'static str, path: &Path, source: io::Error) -> ApplicationsError {
    ApplicationsError::Folder(FolderError::Io { action, path: path.to_owned(), source })
}

fn damaged(path: &Path, why: &str) -> ApplicationsError {
    let source = io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    folder_error("read", path, source)
}

fn make_folder(path: &Path) -> Result<(), ApplicationsError> {
    fs::create_dir_all(path).map_err(|source| folder_error("make", path, source))
}

/// Removes a file or a folder, if there is one.
fn remove(path: &Path) -> Result<(), ApplicationsError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| folder_error("remove", path, source))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, ApplicationsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(folder_error("read", path, error)),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
