//! What each machine of a set does: its workload, with a seed and a rate of its own.

use std::collections::BTreeSet;

use thiserror::Error;
use virtbench_record::{ColocationPlan, SetPlan, SetRecord};
use virtbench_workload::JobSpec;

use super::share::{at_share, saturation};

/// Between the seeds of one set and those of the next.
const SET_SEEDS: u64 = 1_000_000;
/// Between those and the seeds of arrivals.
const ARRIVAL_SEEDS: u64 = 500_000;

/// Why a machine of a set has nothing to do.
#[derive(Debug, Error)]
pub enum JobsError {
    /// A set has a workload that there is not: a defect.
    #[error("the plan names workload {0}, which there is not: a defect of virtbench")]
    NoWorkload(usize),
    /// A share is asked for of a saturation that was not found.
    #[error("the saturation of {workload} was not found, so that a share of it means nothing: {why}")]
    NoSaturation {
        /// The workload.
        workload: String,
        /// What became of the first machine that was to find it.
        why: String,
    },
    /// A share is asked for of a workload that cannot be held to a rate.
    #[error(
        "{workload} cannot run at a share of its saturation: --pattern needs a load, fileserver, mailserver, \
         webserver, a model or dbench"
    )]
    NoRate {
        /// The workload.
        workload: String,
    },
}

/// What each member of a set is to do, its rate worked out from what its saturation was found to be.
pub(crate) fn jobs_of(
    set: &SetPlan,
    plan: &ColocationPlan,
    jobs: &[JobSpec],
    records: &[SetRecord],
    repetition: u32,
) -> Result<Vec<JobSpec>, JobsError> {
    // Each set makes accesses of its own: what an earlier one read would be found in caches by the next.
    let place = plan.sets.iter().position(|one| one.name == set.name).unwrap_or(0) as u64;
    let arrivals = plan.seed.wrapping_add(u64::from(repetition));
    let seed = arrivals.wrapping_add(place.wrapping_mul(SET_SEEDS));
    let machines: BTreeSet<&str> =
        plan.sets.iter().flat_map(|set| &set.members).map(|member| member.vm.as_str()).collect();
    let members = set.members.iter().enumerate();
    members
        .map(|(index, member)| {
            let job = jobs.get(member.workload).cloned().ok_or(JobsError::NoWorkload(member.workload))?;
            // A machine's operations come at the same moments alone and beside others: chance alone would have one of
            // some hundred arrivals differ by a tenth from another.
            let machine = machines.iter().position(|name| *name == member.vm).unwrap_or(0) as u64;
            let arrivals = arrivals.wrapping_add(ARRIVAL_SEEDS + 1_000 * machine);
            // Machines that did the same at the same time would meet more often than chance has it.
            let job = with_seed(job, seed.wrapping_add(1_000 * index as u64), arrivals);
            let Some(percent) = member.share_percent else { return Ok(job) };
            let workload = &plan.workloads[member.workload];
            let most = saturation(plan, records, member.workload)
                .map_err(|why| JobsError::NoSaturation { workload: workload.clone(), why })?;
            at_share(job, most, percent).ok_or_else(|| JobsError::NoRate { workload: workload.clone() })
        })
        .collect()
}

fn with_seed(job: JobSpec, seed: u64, arrivals: u64) -> JobSpec {
    match job {
        JobSpec::Load(load) => {
            JobSpec::Load(virtbench_workload::LoadSpec { seed, arrival_seed: Some(arrivals), ..load })
        }
        JobSpec::Workload(workload) => {
            JobSpec::Workload(virtbench_workload::WorkloadSpec { seed, ..workload })
        }
    }
}
