//! The study of a database: what a user asks for, and a run of it: what saturates each side, then each at its saturation and all
//! with equal users, each repetition after a boot of its own.

use std::path::{Path, PathBuf};

use virtbench_record::{
    ApplianceRoot, ApplianceSide, DatabaseKind, OltpKey, OltpMix, OltpRecord, OltpStep, OltpStudyPlan,
    OltpUsers,
};
use virtbench_runs::RunFolder;

use super::appliances::ApplianceSides;
use super::prepared::DatabaseAppliance;
use super::schedule::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
use crate::appliances::place::check_native;
use crate::guests::GuestChoice;
use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::runner::steps::{Schedule, Steps, Study, Taken, measure_missing, run_study};
use crate::study_error::StudyError;

/// A study of a database.
#[derive(Debug, Clone)]
pub struct OltpStudy {
    /// What is measured.
    pub plan: OltpStudyPlan,
    /// What its appliance is made of, where that is known.
    pub root: Option<ApplianceRoot>,
}

impl OltpStudy {
    /// What is measured, and about how long that takes.
    #[must_use]
    pub fn estimate(plan: &OltpStudyPlan) -> Estimate {
        Schedule::estimate(plan)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, sides: &mut dyn OltpSides, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let mut measuring = Measuring { plan: &self.plan, root: self.root.as_ref(), sides };
        run_study(&self.plan, &mut measuring, run)
    }
}

/// Measures whatever of the folder's plan is missing. A side that fails is left with a record of that, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was measured until then stays.
pub fn run_oltp(
    folder: &mut RunFolder<OltpRecord>,
    sides: &mut dyn OltpSides,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.oltp().cloned() else { return Ok(()) };
    measure_missing(folder, &plan, &mut Measuring { plan: &plan, root: None, sides }, progress)
}

struct Measuring<'a> {
    plan: &'a OltpStudyPlan,
    root: Option<&'a ApplianceRoot>,
    sides: &'a mut dyn OltpSides,
}

impl Study for Measuring<'_> {
    type Schedule = OltpStudyPlan;

    fn storage(&self) -> Option<&Path> {
        Some(self.sides.storage())
    }

    fn appliances(&self) -> Vec<ApplianceRoot> {
        self.root.cloned().into_iter().collect()
    }

    /// A search is made in one boot; every measurement after it has its own.
    fn measure(
        &mut self,
        first: OltpKey,
        steps: &mut Steps<'_, '_, OltpStudyPlan>,
    ) -> Result<(), StudyError> {
        let plan = self.plan;
        let side = plan.sides.iter().find(|side| side.name == first.side);
        let defect = || OltpFailure::failed(format!("{} is no side: a defect", first.side));
        let booted = side.ok_or_else(defect).and_then(|side| self.sides.boot(side, steps.progress));
        let mut boot = match booted {
            Ok(boot) => boot,
            Err(failure) => return steps.take(first, |_| Err(failure)).map(drop),
        };
        let is_like_first = |key: &OltpKey| (&key.side, key.step) == (&first.side, first.step);
        let mut next = Some(first.clone());
        while let Some(key) = next {
            let is_measured =
                steps.take(key.clone(), |progress| apply(plan, &key, boot.as_mut(), progress))?;
            let goes_on = is_measured && key.step == OltpStep::Search;
            next = steps.next().filter(|key| goes_on && is_like_first(key));
        }
        Ok(())
    }
}

/// Applies the load of a measurement.
fn apply(
    plan: &OltpStudyPlan,
    key: &OltpKey,
    boot: &mut (dyn OltpBoot + '_),
    progress: &mut Progress<'_>,
) -> Result<Taken<virtbench_record::OltpMeasured>, OltpFailure> {
    let OltpKey { side, step, users, repetition } = key;
    let users_are = if *users == 1 { "1 user".into() } else { format!("{users} users") };
    let what = match step {
        OltpStep::Search => "looking for saturation".to_owned(),
        OltpStep::Saturation => format!("at saturation, repetition {}", repetition + 1),
        OltpStep::EqualUsers => format!("equal users, repetition {}", repetition + 1),
    };
    progress.doing(&format!("{side}, {users_are}: {what}"));
    let time_ns = if *step == OltpStep::Search { plan.search_ns } else { plan.time_ns };
    let seed = plan.seed.wrapping_add(u64::from(*repetition));
    let load = OltpLoad { users: *users, ramp_up_ns: plan.ramp_up_ns, time_ns, seed };
    let measured = boot.measure(load, progress)?;
    Ok(Taken::of(measured, boot.guest()))
}

/// What a study of a database is asked to do.
#[derive(Debug, Clone)]
pub struct OltpOptions {
    /// Which database.
    pub database: DatabaseKind,
    /// The size of its data.
    pub warehouses: u32,
    /// Processors of each side; several for scaling.
    pub vcpus: Vec<u32>,
    /// Memory of each side, in bytes; else the least that the recipe needs.
    pub memory_bytes: Option<u64>,
    /// Which numbers of users are tried.
    pub users: OltpUsers,
    /// How often each side is measured after the search.
    pub repetitions: u32,
    /// Before each measurement, in nanoseconds.
    pub ramp_ns: u64,
    /// How long a step of the search measures, in nanoseconds.
    pub search_ns: u64,
    /// How long each later measurement takes, in nanoseconds.
    pub time_ns: u64,
    /// TPC-C's think times, times this; none where users do not think.
    pub think_factor: Option<f64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What runs the VMs.
    pub guests: GuestChoice,
    /// How they are reached: `user` or `tap`.
    pub network: String,
    /// Folder for the data; else the run folder.
    pub target_dir: Option<PathBuf>,
}

impl OltpOptions {
    fn plan(&self, root: &str, least_memory: u64) -> OltpStudyPlan {
        let memory_bytes = self.memory_bytes.unwrap_or(least_memory);
        OltpStudyPlan {
            database: self.database,
            root: root.to_owned(),
            warehouses: self.warehouses,
            population_seed: self.seed,
            sides: ApplianceSide::of_sizes(&[false, true], &self.vcpus, memory_bytes),
            users: self.users.clone(),
            repetitions: self.repetitions,
            ramp_up_ns: self.ramp_ns,
            search_ns: self.search_ns,
            time_ns: self.time_ns,
            mix: OltpMix::default(),
            think_factor: self.think_factor,
            seed: self.seed,
            accelerator: self.guests.accelerator_name(),
            network: self.network.clone(),
        }
    }
}

impl Experiment for OltpOptions {
    const NAME: &'static str = "oltp";

    fn estimate(&self) -> Estimate {
        OltpStudy::estimate(&self.plan("", 0))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        // One side is native.
        check_native()?;
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let database = DatabaseAppliance::find(self.database, progress)?;
        let plan = self.plan(database.root_digest(), database.least_memory());
        let vcpus = plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
        let guests = self.guests.find((vcpus, false), run)?;
        let (folder, name) = (self.target_dir.as_deref().unwrap_or(run.out), run.name());
        let mut sides = ApplianceSides::new(&database, &plan, Some(guests), folder, &name)?;
        OltpStudy { plan: plan.clone(), root: Some(database.root()) }.run(&mut sides, run)
    }
}
