//! Jobs as machines of a study get them: for so long, on a disk of this size.

use virtbench_workload::{JobSpec, Workload};

use crate::study_error::StudyError;

/// Gives a job the times that were asked for, and checks it again.
///
/// # Errors
/// The job makes no sense with them.
pub(crate) fn fit(job: &mut JobSpec, time_ns: Option<u64>, ramp_ns: Option<u64>) -> Result<(), StudyError> {
    match job {
        JobSpec::Load(load) => {
            load.time_ns = time_ns.unwrap_or(load.time_ns);
            load.ramp_ns = ramp_ns.unwrap_or(load.ramp_ns);
            load.interval_ns = (load.time_ns / 20).max(1_000_000);
        }
        JobSpec::Workload(workload) => {
            workload.time_ns = time_ns.or(workload.time_ns);
            workload.ramp_ns = ramp_ns.unwrap_or(workload.ramp_ns);
            if let (Some(time_ns), Workload::Files(files)) = (time_ns, &mut workload.workload) {
                files.run_ns = files.run_ns.min(time_ns);
            }
        }
    }
    job.validate().map_err(StudyError::input)
}

/// The job on a disk of this size.
pub(crate) fn sized(job: &JobSpec, size_bytes: u64) -> JobSpec {
    let mut job = job.clone();
    if let JobSpec::Load(load) = &mut job {
        load.region_bytes = load.region_bytes.min(size_bytes);
    }
    job
}
