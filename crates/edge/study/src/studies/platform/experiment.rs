//! The study of a platform as a user asks for it: a profile, the domains of it, and what is compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use virtbench_model::platform::reference_of;
use virtbench_record::{PlatformPlan, PlatformReference};
use virtbench_runs::load_any_run;

use super::profile::{PartOptions, PlatformProfile, domains, names};
use crate::environments::find_environments;
use crate::guests::WantedAccelerator;
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// What stands for this host where only one environment is named.
const THIS_HOST: &str = "native:";

/// What a study of a platform is asked to do.
#[derive(Debug, Clone)]
pub struct PlatformOptions {
    /// How much is measured.
    pub profile: PlatformProfile,
    /// Only these domains; all of the profile where none is named.
    pub domains: Vec<String>,
    /// How often each domain is measured.
    pub repetitions: u32,
    /// A TOML file with how much each domain counts in the score, instead of once.
    pub weights: Option<PathBuf>,
    /// What is compared: two environments, the base first, one with this host, or none for VMs with this host.
    pub environments: Vec<String>,
    /// Another run, with whose figures VMs are compared.
    pub reference: Option<PathBuf>,
    /// What executes the VMs' instructions.
    pub accelerator: WantedAccelerator,
    /// Folder for test disks and data; else the run folder.
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl PlatformOptions {
    /// What is measured.
    ///
    /// # Errors
    /// A domain is named that the profile does not have, or environments, weights or the reference cannot be used.
    pub fn plan(&self) -> Result<PlatformPlan, StudyError> {
        let named = self.compared()?;
        let texts = named.as_ref().map(|[base, subject]| [base.0.as_str(), subject.0.as_str()]);
        let options = PartOptions {
            accelerator: self.accelerator.name(),
            target_dir: self.target_dir.as_deref(),
            environments: texts,
        };
        let mut all = domains(self.profile, &options);
        let known: Vec<String> = all.iter().map(|domain| domain.name.clone()).collect();
        if let Some(name) = self.domains.iter().find(|name| !known.contains(name)) {
            let profile = self.profile.name();
            let elsewhere = if names().contains(name) { "; --profile full has it" } else { "" };
            return Err(StudyError::input(format!(
                "--domains: {name} is none of the profile {profile}: {}{elsewhere}",
                known.join(", ")
            )));
        }
        all.retain(|domain| self.domains.is_empty() || self.domains.contains(&domain.name));
        let mut plan = PlatformPlan {
            profile: self.profile.name().into(),
            domains: all,
            repetitions: self.repetitions,
            weights: self.weights(&known)?,
            accelerator: self.accelerator.name().into(),
            environments: named.map_or_else(Vec::new, |named| named.map(|(_, name)| name).into()),
            reference: None,
            seed: self.seed,
        };
        plan.reference = self.reference(&plan)?;
        Ok(plan)
    }

    fn weights(&self, known: &[String]) -> Result<BTreeMap<String, f64>, StudyError> {
        let Some(path) = &self.weights else { return Ok(BTreeMap::new()) };
        let refused = |why: String| StudyError::input(format!("--weights {}: {why}", path.display()));
        let text = read_user_file(path).map_err(refused)?;
        let weights: BTreeMap<String, f64> =
            toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
        if let Some(name) = weights.keys().find(|name| !known.contains(name)) {
            return Err(StudyError::input(format!("--weights: {name} is no domain: {}", known.join(", "))));
        }
        if weights.values().any(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(StudyError::input("--weights: a weight is zero or more"));
        }
        Ok(weights)
    }

    /// The figures of another run.
    fn reference(&self, plan: &PlatformPlan) -> Result<Option<PlatformReference>, StudyError> {
        let Some(run) = &self.reference else { return Ok(None) };
        let refused = |why: String| StudyError::input(format!("--reference {}: {why}", run.display()));
        let found = load_any_run(run).map_err(|error| refused(error.to_string()))?;
        let name = run.display().to_string();
        reference_of(&name, &found.provenance, found.records.samples(), plan).map(Some).map_err(refused)
    }

    /// The environments that are compared, the base first: each as it was written, and its name.
    fn compared(&self) -> Result<Option<[(String, String); 2]>, StudyError> {
        let texts: Vec<String> = match self.environments.as_slice() {
            [] => return Ok(None),
            [subject] => vec![THIS_HOST.into(), subject.clone()],
            both @ [_, _] => both.into(),
            more => {
                let why = format!("--environment: two are compared, and {} are named", more.len());
                return Err(StudyError::input(why));
            }
        };
        let named = find_environments(&texts).map_err(StudyError::input)?;
        let mut both = texts.into_iter().zip(named.into_iter().map(|one| one.name));
        Ok(both.next().zip(both.next()).map(|(base, subject)| [base, subject]))
    }
}
