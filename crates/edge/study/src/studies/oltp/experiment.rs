//! The study of a database as a user asks for it: one appliance natively and in VMs.

use std::path::PathBuf;

use virtbench_record::{ApplianceSide, DatabaseKind, OltpMix, OltpStudyPlan, OltpUsers};

use super::appliances::ApplianceSides;
use super::prepared::DatabaseAppliance;
use super::run::OltpStudy;
use crate::appliances::place::check_native;
use crate::guests::GuestChoice;
use crate::runner::estimate::Estimate;
use crate::runner::experiment::Experiment;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;

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
