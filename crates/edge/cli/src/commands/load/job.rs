//! What is to be done.

use std::path::{Path, PathBuf};

use virtbench_engine::Target;
use virtbench_formats::{Remark, Schedule};
use virtbench_workload::LoadSpec;

use crate::exit::{Failure, Kind};

/// A file made for a trace ends with a whole sector of any disk, in bytes.
const SECTOR_BYTES: u64 = 4096;

/// A load and what it is applied to.
pub struct Job {
    /// Its name, if it comes from a file.
    pub name: Option<String>,
    /// Where the load is applied.
    pub target: PathBuf,
    /// How much of the target is used, in bytes; all of it where nobody says.
    pub size_bytes: Option<u64>,
    /// How far other jobs of the plan reach into the same target, in bytes.
    pub later_bytes: Option<u64>,
    /// The phase it belongs to: jobs of one run at the same time.
    pub group: u32,
    /// When it starts in that and what ends it.
    pub schedule: Schedule,
    /// The load. Its region and whether it is direct follow from the target.
    pub load: LoadSpec,
}

/// The jobs and what to say about them.
pub struct Plan {
    /// The jobs, in the order of their phases.
    pub jobs: Vec<Job>,
    /// What differs from the tool that a file was written for.
    pub notes: Vec<String>,
    /// What was left out because it cannot be honoured.
    pub ignored: Vec<Remark>,
}

impl Plan {
    /// Tells each job how far the others reach into its target, so that a file is made large enough for all.
    pub fn reach_together(mut self) -> Self {
        let reaches: Vec<(PathBuf, Option<u64>)> =
            self.jobs.iter().map(|job| (job.target.clone(), job.reach_bytes())).collect();
        for job in &mut self.jobs {
            let same = reaches.iter().filter(|(target, _)| *target == job.target);
            job.later_bytes = same.filter_map(|(_, reach)| *reach).max();
        }
        self
    }
}

impl Job {
    pub fn check(&self) -> Result<(), Failure> {
        let region_bytes = self.size_bytes.unwrap_or(u64::MAX);
        LoadSpec { region_bytes, ..self.load.clone() }.validate().map_err(|error| match &self.name {
            Some(name) => Failure::message(Kind::Usage, format!("job {name:?}: {error}")),
            None => Failure::new(Kind::Usage, error),
        })
    }

    /// How much of the target is asked for, in bytes. What is made for a trace, and nothing at all, are as
    /// large as the trace needs.
    pub fn wanted_bytes(&self) -> Option<u64> {
        let extent_bytes =
            self.load.trace.as_ref().map(|trace| trace.extent_bytes.next_multiple_of(SECTOR_BYTES));
        let is_new = || self.target == Path::new("null") || !self.target.exists();
        self.size_bytes.or(extent_bytes.filter(|_| is_new()))
    }

    /// How large a target that is made has to be for this job and for later ones of the same plan.
    pub fn made_bytes(&self) -> Option<u64> {
        self.reach_bytes().max(self.later_bytes)
    }

    /// How far into the target the load reaches, in bytes, where that is known.
    pub fn reach_bytes(&self) -> Option<u64> {
        let region_bytes = self.wanted_bytes()?;
        Some(LoadSpec { region_bytes, ..self.load.clone() }.end_bytes())
    }

    /// The load with what depends on the target.
    pub fn on(&self, target: &Target) -> LoadSpec {
        let rest_bytes = target.facts().size_bytes.saturating_sub(self.load.start_bytes);
        LoadSpec {
            direct: target.facts().direct,
            region_bytes: self.wanted_bytes().unwrap_or(rest_bytes),
            ..self.load.clone()
        }
    }
}
