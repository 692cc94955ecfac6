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
use virtbench_model::Prediction;
use virtbench_model::predict::trials::trial;
use virtbench_model::predict::{Inputs, PredictionMethod, Rounding, predict};
use virtbench_record::{Case, Costs, Plan, PredictionsPlan, Profile, Provenance, Sourced, Trial};
use virtbench_runs::{FolderError, LoadedRun, RunFolder, load_run, write_whole};

use super::costs::parse_costs;
use super::error::ApplicationsError;
use super::trials::TrialSides;
use crate::runner::event::Event;
use crate::runner::progress::Progress;

/// How long the parts of a run take about, as multiples of one another: the costs, the references of a trial, a case
/// natively, and in the VM.
const PARTS: [u64; 4] = [60, 12, 3, 9];

/// What of a folder's plan has not been tried yet, trial by trial, from 1.
#[must_use]
pub fn missing_trials(provenance: &Provenance, trials: &[Trial]) -> Vec<(u32, Vec<Case>)> {
    let Some(plan) = provenance.plan.predictions() else { return Vec::new() };
    let missing = |number: u32| -> Vec<Case> {
        let is_done = |case: &&Case| !trials.iter().any(|one| one.case == case.name && one.trial == number);
        plan.cases.iter().filter(is_done).cloned().collect()
    };
    let all = (1..=plan.trials).map(|number| (number, missing(number)));
    all.filter(|(_, cases)| !cases.is_empty()).collect()
}

/// The applications of a run's plan that no trial is of.
#[must_use]
pub fn untried(provenance: &Provenance, trials: &[Trial]) -> Vec<String> {
    let planned = provenance.plan.predictions().into_iter().flat_map(|plan| &plan.cases);
    let missing = planned.filter(|case| !trials.iter().any(|trial| trial.case == case.name));
    missing.map(|case| case.name.clone()).collect()
}

/// Tries whatever of the folder's plan is missing, in a loop of its own and not the runner's: a case that fails leaves a note and no
/// record, and of a trial all cases are measured natively before the first of them is in a VM, so that a record is not one step. `brought` are costs that were measured before; without them they are
/// measured here. A case that fails is left out with a note, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was tried until then stays.
pub fn run_predictions(
    folder: &mut RunFolder<Trial>,
    sides: &mut dyn TrialSides,
    brought: Option<&Costs>,
    progress: &mut Progress<'_>,
) -> Result<(), ApplicationsError> {
    let Some(plan) = folder.provenance().plan.predictions().cloned() else { return Ok(()) };
    let kept = Kept::new(folder.path());
    kept.sweep();
    let missing = missing_trials(folder.provenance(), folder.records());
    if missing.is_empty() {
        return Ok(());
    }
    let mut course = TrialsDone::new(&plan, &missing);
    course.tell(progress);
    let (costs, mut age) = costs(&kept, sides, brought, progress)?;
    course.go_on(PARTS[0], progress);
    for (number, cases) in &missing {
        progress.check()?;
        let costs = costs_at(&kept, sides, (&costs, age), *number, progress)?;
        age = CostsAge::Earlier;
        course.go_on(PARTS[1], progress);
        let mut sitting = TrialRun {
            folder,
            sides,
            kept: &kept,
            plan: &plan,
            number: *number,
            costs: &costs,
            course: &mut course,
        };
        sitting.go(cases, progress)?;
    }
    Ok(())
}

/// How far a run is.
struct TrialsDone {
    done: u64,
    total: u64,
}

impl TrialsDone {
    fn new(plan: &PredictionsPlan, missing: &[(u32, Vec<Case>)]) -> Self {
        let trials = u64::from(plan.trials);
        let cases = plan.cases.len() as u64;
        let of = |trials: u64, cases: u64| PARTS[0] + trials * PARTS[1] + cases * (PARTS[2] + PARTS[3]);
        let total = of(trials, trials * cases);
        let left = missing.iter().map(|(_, cases)| cases.len() as u64).sum();
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

/// When costs were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CostsAge {
    /// Right before the trial.
    Now,
    /// Before that: how fast the machine is natively has to be measured again.
    Earlier,
}

/// The costs of the folder; else those that were brought, else measured ones.
fn costs(
    kept: &Kept,
    sides: &mut dyn TrialSides,
    brought: Option<&Costs>,
    progress: &mut Progress<'_>,
) -> Result<(Costs, CostsAge), ApplicationsError> {
    if let Some(known) = kept.costs()? {
        return Ok((known, CostsAge::Earlier));
    }
    let (costs, age) = match brought {
        Some(brought) => (brought.clone(), CostsAge::Earlier),
        None => (sides.costs(progress)?, CostsAge::Now),
    };
    kept.keep_costs(&costs)?;
    Ok((costs, age))
}

/// The costs with references as they are natively at this trial.
fn costs_at(
    kept: &Kept,
    sides: &mut dyn TrialSides,
    (costs, age): (&Costs, CostsAge),
    number: u32,
    progress: &mut Progress<'_>,
) -> Result<Costs, ApplicationsError> {
    if let Some(known) = kept.costs_at(number)? {
        return Ok(known);
    }
    let mut now = costs.clone();
    if age == CostsAge::Earlier {
        sides.renew(&mut now, progress)?;
    }
    kept.keep_costs_at(number, &now)?;
    Ok(now)
}

/// One trial of several cases.
struct TrialRun<'a> {
    folder: &'a mut RunFolder<Trial>,
    sides: &'a mut dyn TrialSides,
    kept: &'a Kept,
    plan: &'a PredictionsPlan,
    number: u32,
    costs: &'a Costs,
    course: &'a mut TrialsDone,
}

impl TrialRun<'_> {
    fn go(&mut self, cases: &[Case], progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        // All of the native side first: it changes within minutes, and was looked at just now.
        let mut profiled = Vec::new();
        for case in cases {
            progress.check()?;
            progress.doing(&format!("{} natively, trial {}", case.name, self.number));
            match self.profile(case, progress) {
                Ok(profile) => profiled.push((case, profile)),
                Err(error) => {
                    self.failed(case, error, progress)?;
                    self.course.done += PARTS[3];
                }
            }
            self.course.go_on(PARTS[2], progress);
        }
        for (case, profile) in profiled {
            progress.check()?;
            progress.doing(&format!("{} in the VM, trial {}", case.name, self.number));
            match self.try_one(case, &profile, progress) {
                Ok(trial) => self.keep(trial, progress)?,
                Err(error) => self.failed(case, error, progress)?,
            }
            self.course.go_on(PARTS[3], progress);
        }
        Ok(())
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
        profile: &Profile,
        progress: &mut Progress<'_>,
    ) -> Result<Trial, ApplicationsError> {
        // Before anything is known of the truth.
        let prediction = predicted(self.plan, profile, self.number, self.costs)?;
        let prepared = self.kept.prepared(case, progress.stop)?;
        let verified = self.sides.verify(case, profile, &prepared, self.plan.runs, progress)?;
        if self.folder.provenance().guest.is_none() {
            self.folder.amend(|provenance| provenance.guest = verified.guest)?;
        }
        let percent = |figure: &Sourced<f64>| figure.value().copied();
        Ok(Trial {
            machine_percent: verified.machine_percent,
            reference_percent: percent(&profile.cpu_user_percent)
                .zip(percent(&profile.cpu_system_percent))
                .map(|(user, system)| [user, system]),
            reference_host: profile.host_use.clone(),
            machine_host: verified.host,
            ..trial(&case.name, self.number, &prediction, verified.capacity)
        })
    }

    fn keep(&mut self, trial: Trial, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        let begins = failure_note(&trial.case, trial.trial);
        self.folder.add(trial)?;
        // What failed at first and then did not is no gap.
        if self.folder.provenance().notes.iter().any(|note| note.starts_with(&begins)) {
            self.folder.amend(|provenance| provenance.notes.retain(|note| !note.starts_with(&begins)))?;
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
        error: ApplicationsError,
        progress: &mut Progress<'_>,
    ) -> Result<(), ApplicationsError> {
        if !error.is_of_one_application() {
            return Err(error);
        }
        let note = format!("{}{error}", failure_note(&case.name, self.number));
        progress.remark(&note);
        let begins = failure_note(&case.name, self.number);
        self.folder.amend(|provenance| {
            provenance.notes.retain(|note| !note.starts_with(&begins));
            provenance.notes.push(note);
        })?;
        Ok(())
    }
}

/// How the note of a failed trial begins.
fn failure_note(case: &str, number: u32) -> String {
    format!("Trial {number} of {case} failed: ")
}

fn predicted(
    plan: &PredictionsPlan,
    profile: &Profile,
    number: u32,
    costs: &Costs,
) -> Result<Prediction, ApplicationsError> {
    let method = plan.method.as_deref().map(|name| {
        PredictionMethod::named(name)
            .ok_or_else(|| ApplicationsError::Input(format!("there is no method {name}").into()))
    });
    let inputs = Inputs {
        profile,
        surface: None,
        runs: None,
        costs: Some(costs),
        compute: None,
        subject_processors: Some(plan.vcpus),
        method: method.transpose()?,
        rounding: Rounding::Exact,
        seed: u64::from(number),
    };
    predict(&inputs).map_err(|error| ApplicationsError::Measured(error.into()))
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
        let then = match kept.costs_at(one.trial)? {
            None => kept.costs()?,
            then => then,
        };
        let again = predicted(&plan, &profile, one.trial, &then.ok_or_else(|| lost("the costs"))?)?;
        *one = Trial {
            machine_percent: one.machine_percent,
            reference_percent: one.reference_percent,
            reference_host: one.reference_host.take(),
            machine_host: one.machine_host.take(),
            ..trial(&one.case, one.trial, &again, one.truth)
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

    /// What work costs, as it was measured at first; nothing before that.
    pub(super) fn costs(&self) -> Result<Option<Costs>, ApplicationsError> {
        read_costs(&self.0.join("costs.json"))
    }

    pub(super) fn keep_costs(&self, costs: &Costs) -> Result<(), ApplicationsError> {
        Ok(write_whole(&self.0.join("costs.json"), costs)?)
    }

    /// The costs with references as they were natively at a trial.
    pub(super) fn costs_at(&self, trial: u32) -> Result<Option<Costs>, ApplicationsError> {
        read_costs(&self.costs_path(trial))
    }

    pub(super) fn keep_costs_at(&self, trial: u32, costs: &Costs) -> Result<(), ApplicationsError> {
        Ok(write_whole(&self.costs_path(trial), costs)?)
    }

    fn costs_path(&self, trial: u32) -> PathBuf {
        self.0.join(format!("costs-{trial}.json"))
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

fn read_costs(path: &Path) -> Result<Option<Costs>, ApplicationsError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    parse_costs(&bytes).map(Some).map_err(|why| damaged(path, &why))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
