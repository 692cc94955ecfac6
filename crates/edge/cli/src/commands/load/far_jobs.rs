//! The jobs of a plan on a test file in an environment, one after another.

use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::job::{Job, Plan};
use super::open::DEFAULT_SIZE_BYTES;
use super::phases::{is_plain, phases};
use crate::exit::{Failure, Kind};

/// What is applied to the test file.
pub struct FarJobs {
    /// The loads with the names of their jobs, where they have any, in the order in which they run.
    pub loads: Vec<(Option<String>, LoadSpec)>,
    /// How large the test file is, in bytes: as far as any of them reaches, 1 GiB where none says.
    pub size_bytes: u64,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

impl FarJobs {
    /// The jobs of `plan` in the environments of these names.
    ///
    /// # Errors
    /// A job needs others beside it, or more than a test file that is made for it.
    pub fn new(plan: &Plan, environments: &[&str]) -> Result<Self, Failure> {
        if let Some(phase) = phases(plan).into_iter().find(|phase| !is_plain(phase)) {
            let names: Vec<&str> = phase.iter().take(4).filter_map(|(_, job)| job.name.as_deref()).collect();
            return Err(refused(&format!(
                "{} of the file run at the same time or wait for each other, and in an environment jobs run one after \
                 another: keep one of them in a phase (fio: stonewall; diskspd: one target in a TimeSpan)",
                names.join(", ")
            )));
        }
        plan.jobs.iter().try_for_each(check)?;
        let size_bytes = plan.jobs.iter().filter_map(Job::made_bytes).max().unwrap_or(DEFAULT_SIZE_BYTES);
        let loads = plan.jobs.iter().map(|job| Ok((job.name.clone(), on_file(job, size_bytes)?)));
        let loads: Vec<(Option<String>, LoadSpec)> = loads.collect::<Result<_, Failure>>()?;
        if loads.is_empty() {
            return Err(Failure::message(Kind::Other, "there is no load to apply"));
        }
        let note = || {
            let (size, place) = (format_bytes(size_bytes), environments.join(" and in "));
            format!(
                "jobs run on a test file of {size} in {place}, made for them, in place of what the file names"
            )
        };
        let is_of_file = plan.jobs.iter().any(|job| job.name.is_some());
        Ok(Self { loads, size_bytes, notes: is_of_file.then(note).into_iter().collect() })
    }
}

fn refused(why: &str) -> Failure {
    Failure::message(Kind::Usage, format!("--environment: {why}"))
}

/// Refuses what a test file elsewhere cannot give.
fn check(job: &Job) -> Result<(), Failure> {
    let name = job.name.as_deref().unwrap_or("the load");
    if job.schedule.must_exist {
        return Err(refused(&format!(
            "job {name:?} wants a target that exists (allow_file_create=0), and its test file is made for it"
        )));
    }
    Ok(())
}

/// The load on a file of this size; all of it from where the job begins, where it does not say how much.
fn on_file(job: &Job, size_bytes: u64) -> Result<LoadSpec, Failure> {
    let rest_bytes = size_bytes.saturating_sub(job.load.start_bytes);
    let spec = LoadSpec { region_bytes: job.size_bytes.unwrap_or(rest_bytes), ..job.load.clone() };
    spec.validate().map_err(|error| {
        let name = job.name.as_deref().unwrap_or("the load");
        Failure::message(Kind::Usage, format!("job {name:?} on a test file: {error}"))
    })?;
    Ok(spec)
}
