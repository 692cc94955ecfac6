//! What studies of a grid have in common: the points, how each is measured, and on what.

use std::path::{Path, PathBuf};

use virtbench_record::{GridPlan, Plan, Provenance};

use crate::estimate::Estimate;
use crate::event::Event;
use crate::folder::RunFolder;
use crate::grid::{Grid, check_plan};
use crate::guests::GuestOptions;
use crate::run::Run;
use crate::schedule::schedule;
use crate::study_error::StudyError;

/// What a step takes beside its ramp-up and measuring time, in nanoseconds: for the first estimate.
const STEP_OVERHEAD_NS: u64 = 120_000_000;

/// Points, and how each is measured.
#[derive(Debug, Clone)]
pub struct GridOptions {
    /// The points, repetitions and times.
    pub grid: Grid,
    /// I/Os that each worker keeps outstanding.
    pub outstanding: u32,
    /// Workers.
    pub workers: u32,
    /// Size of the test disk, in bytes.
    pub size_bytes: u64,
    /// Folder for the test disks, instead of the run folder: the storage under it is what is measured.
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What guests are made of.
    pub guest: GuestOptions,
}

impl GridOptions {
    /// What a run is to measure in these environments.
    ///
    /// # Errors
    /// A point is no load that can be applied.
    pub(super) fn provenance(
        &self,
        study: impl FnOnce(GridPlan) -> Plan,
        environments: Vec<String>,
        run: &Run<'_>,
    ) -> Result<Provenance, StudyError> {
        let plan = self.plan(environments)?;
        Ok(run.provenance(study(plan), self.disks_folder(run)))
    }

    /// What is to be measured in these environments.
    fn plan(&self, environments: Vec<String>) -> Result<GridPlan, StudyError> {
        let grid = self.grid.clone();
        let plan = GridPlan {
            grid: grid.name,
            blocks_bytes: grid.blocks_bytes,
            read_percents: grid.read_percents,
            random_percents: grid.random_percents,
            repetitions: grid.repetitions,
            outstanding: self.outstanding,
            workers: self.workers,
            ramp_ns: grid.ramp_ns,
            time_ns: grid.time_ns,
            size_bytes: self.size_bytes,
            environments,
            seed: self.seed,
        };
        check_plan(&plan).map_err(StudyError::input)?;
        Ok(plan)
    }

    /// What is to be measured in so many environments, and how long that takes about.
    ///
    /// # Errors
    /// A point is no load that can be applied, as when it is measured.
    pub fn estimate(&self, environments: usize) -> Result<Estimate, StudyError> {
        let plan = self.plan(vec![String::new(); environments])?;
        let measurements = self.grid.points().len() * plan.repetitions as usize * environments;
        Ok(Estimate::equal(measurements, each_ns(plan.ramp_ns, plan.time_ns)))
    }

    /// The folder for the test disks.
    pub(super) fn disks_folder<'f, 'a: 'f>(&'f self, run: &Run<'a>) -> &'f Path {
        run.disks_folder(self.target_dir.as_deref())
    }
}

/// Says how much there is to do.
pub(super) fn announce(folder: &RunFolder, run: &mut Run<'_>) {
    let Some(plan) = folder.provenance().plan.grid() else { return };
    let estimate = Estimate::equal(schedule(plan).len(), each_ns(plan.ramp_ns, plan.time_ns));
    run.observer.event(Event::Planned(&estimate));
}

/// How long a measurement takes, in nanoseconds.
fn each_ns(ramp_ns: u64, time_ns: u64) -> u64 {
    ramp_ns.saturating_add(time_ns).saturating_add(STEP_OVERHEAD_NS)
}
