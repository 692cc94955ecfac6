//! The study of predictions: the file of applications that they are tried on, which are profiled natively, predicted, and only
//! then run in a VM.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use virtbench_model::predict::PredictionMethod;
use virtbench_record::{Case, CaseSet, Costs, Plan, PredictionsPlan, Trial};
use virtbench_runs::{FolderError, RunFolder, read_provenance};

use super::error::ApplicationsError;
use super::machine::VmOptions;
use super::metric::Metric;
use super::run::{is_whole, run_predictions};
use super::storage::Storage;
use super::storages::StorageVms;
use super::trials::HostAndVm;
use super::verify::own_workload;
use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// A study of how well predictions hold.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// The applications.
    pub cases: Cases,
    /// Trials of each.
    pub trials: u32,
    /// Runs on each side in a trial, of which the middle one counts.
    pub runs: u32,
    /// How everything is predicted; the best method for which there is enough where nothing is said.
    pub method: Option<PredictionMethod>,
    /// The VM; where there are storages, all but its disk.
    pub vm: VmOptions,
    /// Storages of VMs, the first of which applications are predicted from; none where that is this host.
    pub storages: Vec<Storage>,
    /// What work costs, where that was measured before.
    pub costs: Option<Costs>,
}

impl Predictions {
    /// How many trials there are. An application takes as long as it takes, so their length is unknown.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let subjects = self.storages.len().saturating_sub(1).max(1);
        let measurements = self.cases.cases.len().saturating_mul(self.trials as usize * subjects);
        let first = match self.storages.is_empty() {
            true => self.costs.is_none().then(|| "what pieces of work cost".to_owned()),
            false => Some("how fast each storage is".to_owned()),
        };
        Estimate {
            measurements,
            machines: None,
            total_ns: None,
            moments_ns: None,
            is_bound: false,
            besides: first,
        }
    }

    /// Tries whatever is missing in the run folder.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was tried. Any other failure is the
    /// answer, and the folder holds what was tried until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let plan = self.plan();
        let provenance = run.provenance(Plan::Predictions(plan.clone()), &self.vm.folder);
        let mut folder: RunFolder<Trial> = run.open(provenance)?;
        if is_whole(&plan, folder.records()) {
            return Ok(Ok(()));
        }
        let measured = self.measure(&mut folder, run).map_err(StudyError::from);
        run.end(folder, measured)
    }

    fn measure(&self, folder: &mut RunFolder<Trial>, run: &mut Run<'_>) -> Result<(), ApplicationsError> {
        let progress = &mut Progress { stop: run.stop, observer: run.observer };
        if self.storages.is_empty() {
            let mut sides = HostAndVm::new(self.vm.clone(), progress)?;
            return run_predictions(folder, &mut sides, self.costs.as_ref(), progress);
        }
        let mut sides = StorageVms::new(self.vm.clone(), self.storages.clone(), progress)?;
        run_predictions(folder, &mut sides, None, progress)
    }

    fn plan(&self) -> PredictionsPlan {
        let VmOptions { guest, disk_bytes, storage, filesystem, limit_ns, .. } = &self.vm;
        PredictionsPlan {
            set: self.cases.set,
            cases: self.cases.cases.clone(),
            trials: self.trials,
            runs: self.runs,
            method: self.method.map(|method| method.name().to_owned()),
            vcpus: guest.vcpus,
            memory_bytes: guest.memory_bytes,
            adapter: self.storages.first().unwrap_or(storage).to_string(),
            storages: self.storages.iter().map(Storage::to_string).collect(),
            size_bytes: *disk_bytes,
            filesystem: filesystem.clone(),
            accelerator: guest.accelerator.name().to_owned(),
            limit_ns: *limit_ns,
        }
    }
}

/// The storages of the run in a folder.
///
/// # Errors
/// There is no run of predictions, or its storages cannot be had any more.
pub fn storages_of_run(folder: &Path) -> Result<Vec<Storage>, StudyError> {
    let plan = plan_of_run(folder)?;
    plan.storages.iter().map(|text| Storage::parse(text).map_err(StudyError::input)).collect()
}

fn plan_of_run(folder: &Path) -> Result<PredictionsPlan, StudyError> {
    let other = || FolderError::OtherPlan { path: folder.to_owned(), field: "the study".into() };
    Ok(read_provenance(folder)?.plan.predictions().cloned().ok_or_else(other)?)
}

/// Several storages, each once.
///
/// # Errors
/// There is only one, too many, or one is there twice; in words.
pub fn several_storages(texts: &[String]) -> Result<Vec<Storage>, String> {
    let storages: Vec<Storage> = texts.iter().map(|text| Storage::parse(text)).collect::<Result<_, _>>()?;
    if storages.len() == 1 || storages.len() > MOST_STORAGES {
        return Err(format!(
            "{} storages: name the one that applications run on, and 1 to {} others",
            storages.len(),
            MOST_STORAGES - 1
        ));
    }
    for (index, storage) in storages.iter().enumerate() {
        if storages[..index].contains(storage) {
            return Err(format!("{storage} is there twice: leave one out"));
        }
    }
    Ok(storages)
}

const MOST_STORAGES: usize = 32;

/// The most applications in a file.
const MOST_CASES: usize = 1000;

/// Applications, at least one, each with a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// Which set they are, where the file says so.
    pub set: Option<CaseSet>,
    /// The applications.
    pub cases: Vec<Case>,
}

/// What is wrong with a file of cases.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CasesError {
    /// It is no TOML, or has something at its top that it should not have.
    #[error("{0}")]
    File(String),
    /// A case cannot be used.
    #[error("case {case}: {why}")]
    Case {
        /// Its name, or its number, from 1.
        case: String,
        /// What is wrong with it; begins with the field where it is one.
        why: String,
    },
    /// A case is asked for that there is not.
    #[error("there is no case {name}: there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// The file, its cases not looked at yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    set: Option<CaseSet>,
    #[serde(default)]
    case: Vec<toml::Table>,
}

impl Cases {
    /// The cases of these names in a file; all where there are no names.
    ///
    /// # Errors
    /// The file cannot be read or is invalid, or there is no case of a name.
    pub fn of_file(path: &Path, only: &[String]) -> Result<Self, StudyError> {
        let wrong = |why: String| StudyError::input(format!("{}: {why}", path.display()));
        let cases =
            Self::parse(&read_user_file(path).map_err(wrong)?).map_err(|error| wrong(error.to_string()))?;
        cases.only(only).map_err(|error| StudyError::input(format!("--only: {error}")))
    }

    /// Those of the run in a folder, as its file may have changed or be gone.
    ///
    /// # Errors
    /// There is no run of predictions.
    pub fn of_run(folder: &Path) -> Result<Self, StudyError> {
        let plan = plan_of_run(folder)?;
        Ok(Self { set: plan.set, cases: plan.cases })
    }

    /// Reads a file of cases.
    ///
    /// # Errors
    /// What is wrong, with the case and the field.
    pub fn parse(text: &str) -> Result<Self, CasesError> {
        let file: File = toml::from_str(text).map_err(|error| CasesError::File(error.to_string()))?;
        if file.case.is_empty() || file.case.len() > MOST_CASES {
            let why = format!("{} cases: between 1 and {MOST_CASES} [[case]] are needed", file.case.len());
            return Err(CasesError::File(why));
        }
        let numbered = file.case.into_iter().enumerate();
        let cases: Vec<Case> = numbered.map(|(index, table)| case(index, table)).collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        for case in &cases {
            if !seen.insert(case.name.as_str()) {
                return Err(wrong(&case.name, "name: another case has it too"));
            }
        }
        Ok(Self { set: file.set, cases })
    }

    /// Only the cases of these names; all where there are none.
    ///
    /// # Errors
    /// There is no case of a name.
    pub fn only(mut self, names: &[String]) -> Result<Self, CasesError> {
        if let Some(name) = names.iter().find(|name| !self.cases.iter().any(|case| case.name == **name)) {
            let known: Vec<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
            return Err(CasesError::Unknown { name: name.clone(), known: known.join(", ") });
        }
        self.cases.retain(|case| names.is_empty() || names.contains(&case.name));
        Ok(self)
    }
}

fn wrong(case: &str, why: impl Into<String>) -> CasesError {
    CasesError::Case { case: case.to_owned(), why: why.into() }
}

fn case(index: usize, table: toml::Table) -> Result<Case, CasesError> {
    let name = table.get("name").and_then(|name| name.as_str()).map(str::to_owned);
    let shown = name.unwrap_or_else(|| format!("number {}", index + 1));
    let case: Case = table.try_into().map_err(|error: toml::de::Error| wrong(&shown, error.message()))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if case.name.is_empty() || case.name.starts_with('.') || !case.name.chars().all(is_plain) {
        return Err(wrong(&shown, "name: letters, digits, -, _ and . make one; files are called so"));
    }
    if case.command.first().is_none_or(String::is_empty) {
        return Err(wrong(&shown, "command: there is no program in it"));
    }
    if case.workers == 0 {
        return Err(wrong(&shown, "workers: at least 1"));
    }
    match &case.metric {
        Some(metric) => {
            Metric::parse(metric).map_err(|why| wrong(&shown, format!("metric: {why}")))?;
        }
        None if own_workload(&case.command).is_none() => {
            return Err(wrong(
                &shown,
                "metric: elapsed, io or a regular expression with one group is needed",
            ));
        }
        None => {}
    }
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "[[case]]\nname = 'a'\ncommand = ['true']\nmetric = 'elapsed'\nworkers = 1\n";

    #[test]
    fn a_file_of_cases_says_which_set_it_is() {
        assert_eq!(Cases::parse(CASE).unwrap().set, None);
        let held_out = Cases::parse(&format!("set = 'held-out'\n{CASE}")).unwrap();
        assert_eq!((held_out.set, held_out.cases.len()), (Some(CaseSet::HeldOut), 1));
        assert!(Cases::parse(&format!("set = 'best'\n{CASE}")).unwrap_err().to_string().contains("set"));
    }

    #[test]
    fn the_published_sets_can_be_read_and_say_which_they_are() {
        let read = |text| Cases::parse(text).unwrap();
        let sets = [
            read(include_str!("../../../../../../docs/data/predictions.toml")),
            read(include_str!("../../../../../../docs/data/everyday.toml")),
            read(include_str!("../../../../../../docs/data/once-unseen.toml")),
            read(include_str!("../../../../../../docs/data/unseen.toml")),
            read(include_str!("../../../../../../docs/data/held-out.toml")),
            read(include_str!("../../../../../../docs/data/fresh.toml")),
        ];
        assert!(sets[..5].iter().all(|cases| cases.set == Some(CaseSet::Tuning)));
        assert_eq!(sets[5].set, Some(CaseSet::HeldOut));
        let names: Vec<&str> =
            sets.iter().flat_map(|cases| &cases.cases).map(|case| case.name.as_str()).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!((names.len(), distinct.len()), (55, 55), "no case is in two");
    }

    #[test]
    fn errors_name_the_case_and_the_field() {
        for (text, said) in [
            (CASE.replace("workers = 1", ""), "case a: missing field `workers`"),
            (CASE.replace("workers = 1", "workers = 0"), "case a: workers: at least 1"),
            (CASE.replace("workers", "worker"), "case a: unknown field `worker`"),
            (CASE.replace("'elapsed'", "'('"), "case a: metric: "),
            (CASE.replace("metric = 'elapsed'\n", ""), "case a: metric: "),
            (CASE.replace("['true']", "[]"), "case a: command: "),
            (CASE.replace("'a'", "'../a'"), "case ../a: name: "),
            (CASE.replace("'a'", "'.a'"), "case .a: name: "),
            (CASE.replace("name = 'a'\n", ""), "case number 1: missing field `name`"),
            (CASE.repeat(2), "case a: name: another"),
            (String::new(), "0 cases"),
            ("[[case]\n".into(), "line 1"),
        ] {
            let error = Cases::parse(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
        let error = Cases::parse(CASE).unwrap().only(&["b".into()]).unwrap_err().to_string();
        assert_eq!(error, "there is no case b: there are a");
    }
}
