//! The study of an application: what a user asks for, and a run of it, each side alone and beside its neighbours, each repetition
//! after a boot of its own.

use std::path::{Path, PathBuf};

use virtbench_recipe::Recipe;
use virtbench_record::{
    ApplianceRoot, ApplianceSide, ApplicationKey, ApplicationLoad, ApplicationPlan, ApplicationRecord,
    ApplicationTier,
};
use virtbench_runs::RunFolder;

use super::file::{ApplicationFile, SideKind, TierFile};
use super::load::ApplianceLoad;
use super::members::LoadedAppliances;
use super::schedule::{ApplicationFailure, ApplicationSides, words};
use crate::appliances::built::{BuiltAppliance, find_recipe_beside};
use crate::appliances::place::check_native;
use crate::guests::GuestChoice;
use crate::runner::event::Estimate;
use crate::runner::prerequisites::is_program;
use crate::runner::progress::Progress;
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::runner::steps::{Schedule, Steps, Study, Taken, measure_missing, run_study};
use crate::study_error::StudyError;

/// A study of an application.
#[derive(Debug, Clone)]
pub struct ApplicationStudy {
    /// What is measured.
    pub plan: ApplicationPlan,
    /// What its appliances are made of.
    pub roots: Vec<ApplianceRoot>,
}

impl ApplicationStudy {
    /// What is measured, and about how long that takes, where the plan says how long a client takes.
    #[must_use]
    pub fn estimate(plan: &ApplicationPlan) -> Estimate {
        Schedule::estimate(plan)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, sides: &mut dyn ApplicationSides, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        run_study(&self.plan, &mut Measuring { plan: &self.plan, roots: &self.roots, sides }, run)
    }
}

/// Measures whatever of the folder's plan is missing. A measurement that fails leaves a record of that, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was measured until then stays.
pub fn run_application(
    folder: &mut RunFolder<ApplicationRecord>,
    sides: &mut dyn ApplicationSides,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.application().cloned() else { return Ok(()) };
    measure_missing(folder, &plan, &mut Measuring { plan: &plan, roots: &[], sides }, progress)
}

struct Measuring<'a> {
    plan: &'a ApplicationPlan,
    roots: &'a [ApplianceRoot],
    sides: &'a mut dyn ApplicationSides,
}

impl Study for Measuring<'_> {
    type Schedule = ApplicationPlan;

    fn storage(&self) -> Option<&Path> {
        Some(self.sides.storage())
    }

    fn appliances(&self) -> Vec<ApplianceRoot> {
        self.roots.to_vec()
    }

    fn measure(
        &mut self,
        first: ApplicationKey,
        steps: &mut Steps<'_, '_, ApplicationPlan>,
    ) -> Result<(), StudyError> {
        let key = first.clone();
        let side = self.plan.sides.iter().find(|side| side.name == key.side);
        let once = |progress: &mut Progress<'_>| {
            progress.doing(&words(&key));
            let side =
                side.ok_or_else(|| ApplicationFailure::failed(format!("{}: no side: a defect", key.side)))?;
            let (measured, guest) = self.sides.measure(side, key.neighbours, progress)?;
            Ok(Taken::of(measured, guest))
        };
        steps.take(first, once).map(drop)
    }
}

/// What a study of an application is asked to do.
#[derive(Debug, Clone)]
pub struct ApplicationOptions {
    /// The study's file.
    pub file: ApplicationFile,
    /// The recipe that it loads.
    pub recipe: Recipe,
    /// That of its neighbours, where they run another load.
    pub neighbour: Option<Recipe>,
    /// Those of its tiers, in their order.
    pub tiers: Vec<Recipe>,
    /// Seed of the resampling behind the intervals.
    pub seed: u64,
    /// What runs the VMs.
    pub guests: GuestChoice,
    /// How they are reached: `user` or `tap`.
    pub network: String,
    /// Folder for the data; else the run folder.
    pub target_dir: Option<PathBuf>,
}

impl ApplicationOptions {
    /// The study of a file with what is to be otherwise, whose recipes are looked for beside it. What no file says has its default.
    ///
    /// # Errors
    /// The file cannot be used, also as it was changed, or a recipe cannot be found.
    pub fn of_file(path: &Path, change: impl FnOnce(&mut ApplicationFile)) -> Result<Self, StudyError> {
        let mut file = ApplicationFile::find(path)?;
        change(&mut file);
        file.check().map_err(|why| StudyError::input(format!("{}: {why}", path.display())))?;
        let find = |name: &str| find_recipe_beside(path, name).map(|found| found.recipe);
        let neighbour =
            file.neighbour.as_ref().map(|other| find(other.appliance.as_ref().unwrap_or(&file.appliance)));
        Ok(Self {
            recipe: find(&file.appliance)?,
            neighbour: neighbour.transpose()?,
            tiers: file.tiers.iter().map(|tier| find(&tier.appliance)).collect::<Result<_, _>>()?,
            file,
            seed: 1,
            guests: GuestChoice::default(),
            network: "user".to_owned(),
            target_dir: None,
        })
    }

    /// The appliances of further tiers, built where they have not been.
    fn tiers(&self, progress: &mut Progress<'_>) -> Result<Vec<ApplianceLoad>, StudyError> {
        let files = self.file.tiers.iter().zip(&self.tiers);
        let one = |(file, recipe): (&TierFile, &Recipe)| {
            Ok(ApplianceLoad::of_tier(BuiltAppliance::find(recipe, progress)?, file.prepare.clone()))
        };
        files.map(one).collect()
    }

    /// Fails where a program of the file's commands is not here.
    fn find_programs(&self) -> Result<(), StudyError> {
        let of_tiers = self.file.tiers.iter().flat_map(|tier| &tier.prepare);
        let others = self.file.neighbour.iter().flat_map(|other| other.prepare.iter().chain([&other.client]));
        let commands = self.file.prepare.iter().chain(of_tiers).chain([&self.file.client]).chain(others);
        let missing = commands.filter_map(|words| words.first()).find(|name| !is_program(name));
        missing.map_or(Ok(()), |name| {
            let why = format!("{name} is not here: install it, or name it with its folder");
            Err(StudyError::Environment(why.into()))
        })
    }

    fn plan(
        &self,
        load: ApplicationLoad,
        neighbour: Option<ApplicationLoad>,
        tiers: Vec<ApplicationTier>,
    ) -> ApplicationPlan {
        let file = &self.file;
        let memory_bytes = file.memory_bytes.unwrap_or(self.recipe.memory);
        let vms: Vec<bool> = file.sides.iter().map(|kind| *kind == SideKind::Vm).collect();
        ApplicationPlan {
            load,
            tiers,
            metrics: file.metrics.clone(),
            limit_ns: file.limit_ns,
            takes_ns: file.takes_ns,
            sides: ApplianceSide::of_sizes(&vms, &file.vcpus, memory_bytes),
            repetitions: file.repetitions,
            neighbours: file.neighbours,
            neighbour,
            disk: file.disk.clone(),
            seed: self.seed,
            accelerator: self.guests.accelerator_name(),
            network: self.network.clone(),
        }
    }
}

impl Experiment for ApplicationOptions {
    const NAME: &'static str = "application";

    /// The time is known where the file says how long a client takes.
    fn estimate(&self) -> Estimate {
        let load = ApplicationLoad {
            appliance: self.recipe.name.clone(),
            root: String::new(),
            prepare: Vec::new(),
            client: Vec::new(),
        };
        let named = self.file.tiers.iter().zip(&self.tiers);
        let tier = |(file, recipe): (&TierFile, &Recipe)| ApplicationTier {
            name: file.name.clone(),
            appliance: recipe.name.clone(),
            root: String::new(),
            prepare: Vec::new(),
        };
        ApplicationStudy::estimate(&self.plan(load, None, named.map(tier).collect()))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        self.find_programs()?;
        if self.file.sides.contains(&SideKind::Native) {
            check_native()?;
        }
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let built = BuiltAppliance::find(&self.recipe, progress)?;
        let load = ApplianceLoad::new(built, self.file.prepare.clone(), self.file.client.clone());
        let neighbour = match (&self.file.neighbour, &self.neighbour) {
            (Some(file), Some(recipe)) => {
                let built = BuiltAppliance::find(recipe, progress)?;
                Some(ApplianceLoad::new(built, file.prepare.clone(), file.client.clone()))
            }
            _ => None,
        };
        let tiers = self.tiers(progress)?;
        let named = self.file.tiers.iter().zip(&tiers);
        let tier_plans = named.map(|(file, tier)| tier.tier_plan(&file.name)).collect();
        let beside = neighbour.as_ref().map(|other| other.plan().clone());
        let plan = self.plan(load.plan().clone(), beside, tier_plans);
        let all = [Some(&load), neighbour.as_ref()].into_iter().flatten().chain(&tiers);
        let mut roots: Vec<_> = all.map(|one| one.built().root()).collect();
        roots.dedup();
        let vcpus = plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
        let has_vms = plan.sides.iter().any(|side| side.vm);
        let guests = has_vms.then(|| self.guests.find((vcpus, false), run)).transpose()?;
        let (folder, name) = (self.target_dir.as_deref().unwrap_or(run.out), run.name());
        let mut sides = LoadedAppliances::new(&plan, load, (neighbour, tiers), guests, folder, &name)?;
        ApplicationStudy { plan: plan.clone(), roots }.run(&mut sides, run)
    }
}
