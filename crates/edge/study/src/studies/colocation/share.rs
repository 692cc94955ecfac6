//! A load of x % of saturation ([VirtualFence 2013], section 4.3): "finding the saturation throughput for each
//! application, and adjusting the number of threads and thread I/O rate".

use virtbench_record::{ColocationPlan, SetRecord, SetRole};
use virtbench_workload::files::Pace;
use virtbench_workload::{Arrivals, JobSpec, Rate, Workload};

/// The result of a workload unhindered, in operations per second of all machines that ran it for that: the mean of what was
/// measured.
///
/// # Errors
/// Why nothing usable was measured.
pub fn saturation(plan: &ColocationPlan, records: &[SetRecord], workload: usize) -> Result<f64, String> {
    let finds = |record: &&SetRecord| {
        plan.set(&record.set).is_some_and(|set| {
            set.role == SetRole::Saturation
                && set.members.first().is_some_and(|member| member.workload == workload)
        })
    };
    let found: Vec<&SetRecord> = records.iter().filter(finds).collect();
    let rates: Vec<f64> = found
        .iter()
        .filter_map(|record| {
            record.members.iter().map(|member| member.usable()?.outcome.throughput()).sum::<Option<f64>>()
        })
        .filter(|rate| *rate > 0.0)
        .collect();
    if rates.is_empty() {
        let mut members = found.iter().flat_map(|record| &record.members);
        let why = members.find_map(|member| Some(format!("{}: {}", member.vm, member.unusable()?)));
        let nothing = "no operation completed while it was measured: raise --time, or take a quieter host";
        return Err(why.unwrap_or_else(|| nothing.to_owned()));
    }
    Ok(rates.iter().sum::<f64>() / rates.len() as f64)
}

/// The job at `percent` of `saturation` operations a second, arriving at random, as those of many users
/// do. Response time counts from the intended start. Nothing where the workload has no rate.
#[must_use]
pub fn at_share(job: JobSpec, saturation: f64, percent: f64) -> Option<JobSpec> {
    let rate = Rate { per_second: saturation * percent / 100.0, arrivals: Arrivals::Poisson };
    match job {
        JobSpec::Load(mut load) => {
            load.rate = Some(rate);
            Some(JobSpec::Load(load))
        }
        JobSpec::Workload(mut workload) => match &mut workload.workload {
            Workload::Files(files) if files.is_timed() => {
                files.pace = Some(Pace { rate, open: true });
                Some(JobSpec::Workload(workload))
            }
            _ => None,
        },
    }
}
