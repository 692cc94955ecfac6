//! Who runs beside whom, in which order, and what each machine of a set does: its workload, with a seed and a rate of its own.

use std::collections::BTreeSet;

use thiserror::Error;
use virtbench_record::{ColocationPlan, MemberPlan, SetPlan, SetRecord, SetRole};
use virtbench_runs::RunFolder;
use virtbench_units::Random;
use virtbench_workload::files::Pace;
use virtbench_workload::{Arrivals, JobSpec, Rate, Workload};

use crate::studies::grid::definition::shuffle;

/// One repetition of one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledSet {
    /// Index of the set in the plan.
    pub set: usize,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// Every step of a plan, in order: what finds a saturation first, then each repetition with its sets in
/// an order of its own, drawn from the seed, so that whatever drifts hits them alike.
#[must_use]
pub fn schedule_sets(plan: &ColocationPlan) -> Vec<ScheduledSet> {
    let of_role = |saturation: bool| -> Vec<usize> {
        let all = plan.sets.iter().enumerate();
        all.filter(|(_, set)| (set.role == SetRole::Saturation) == saturation)
            .map(|(index, _)| index)
            .collect()
    };
    let mut random = Random::new(plan.seed);
    let mut steps = Vec::new();
    for set in of_role(true) {
        steps.extend((0..plan.repetitions).map(|repetition| ScheduledSet { set, repetition }));
    }
    for repetition in 0..plan.repetitions {
        let mut order = of_role(false);
        shuffle(&mut order, &mut random);
        steps.extend(order.into_iter().map(|set| ScheduledSet { set, repetition }));
    }
    steps
}

/// What of a folder's plan is not measured yet, in order.
#[must_use]
pub fn missing_sets(folder: &RunFolder<SetRecord>) -> Vec<ScheduledSet> {
    let provenance = folder.provenance();
    let Some(plan) = provenance.plan.colocation() else { return Vec::new() };
    let measured: BTreeSet<(&str, u32)> =
        folder.records().iter().map(|record| (record.set.as_str(), record.repetition)).collect();
    let steps = schedule_sets(plan).into_iter();
    steps.filter(|step| !measured.contains(&(plan.sets[step.set].name.as_str(), step.repetition))).collect()
}

/// The most workloads of a matrix: 20 of them are 250 sets.
const MAX_WORKLOADS: usize = 20;

/// Which machines run while saturation is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saturating {
    /// The first, alone.
    One,
    /// All at once: what they do together.
    All,
}

/// Whether a job can be held to a rate.
#[must_use]
pub fn takes_a_rate(job: &JobSpec) -> bool {
    at_share(job.clone(), 1.0, 1.0).is_some()
}

fn one(name: String, role: SetRole, member: MemberPlan) -> SetPlan {
    SetPlan { name, role, members: vec![member] }
}

/// So many machines that do the same, for each number.
pub(super) fn neighbours(vms: &[u32]) -> Vec<SetPlan> {
    let mut numbers = vms.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let member = |number| MemberPlan { vm: format!("vm{number}"), workload: 0, share_percent: None };
    let set = |vms: u32| SetPlan {
        name: vms.to_string(),
        role: if vms == 1 { SetRole::Alone } else { SetRole::Together },
        members: (1..=vms).map(member).collect(),
    };
    numbers.into_iter().map(set).collect()
}

/// Saturation, each machine alone at its share, all together ([VirtualFence 2013], section 4.3).
///
/// # Errors
/// The job cannot be held to a rate, in words.
pub(super) fn pattern(
    name: &str,
    job: &JobSpec,
    shares: &[f64],
    saturating: Saturating,
) -> Result<Vec<SetPlan>, String> {
    if !takes_a_rate(job) {
        return Err(format!(
            "{name} cannot run at a share of its saturation: take a load, fileserver, mailserver, webserver, a \
             model or dbench, or give --matrix"
        ));
    }
    let member = |(index, share): (usize, &f64)| MemberPlan {
        vm: format!("vm{}", index + 1),
        workload: 0,
        share_percent: Some(*share),
    };
    let members: Vec<MemberPlan> = shares.iter().enumerate().map(member).collect();
    let all = saturating == Saturating::All;
    let seeking = members.iter().take(if all { members.len() } else { 1 });
    let seeking = seeking.map(|member| MemberPlan { share_percent: None, ..member.clone() }).collect();
    let mut sets = vec![SetPlan { name: "saturation".into(), role: SetRole::Saturation, members: seeking }];
    let alone = |member: &MemberPlan| one(format!("{}-alone", member.vm), SetRole::Alone, member.clone());
    sets.extend(members.iter().map(alone));
    sets.push(SetPlan { name: "together".into(), role: SetRole::Together, members });
    Ok(sets)
}

/// Each of so many workloads alone in each of two machines, then each beside each.
///
/// # Errors
/// There are too few or too many, in words.
pub(super) fn matrix(workloads: usize) -> Result<Vec<SetPlan>, String> {
    if !(2..=MAX_WORKLOADS).contains(&workloads) {
        return Err(format!(
            "{workloads} workloads make no matrix: name 2 to {MAX_WORKLOADS} with --workload"
        ));
    }
    let member =
        |vm: usize, workload: usize| MemberPlan { vm: format!("vm{vm}"), workload, share_percent: None };
    let mut sets = Vec::new();
    for vm in [1, 2] {
        for workload in 0..workloads {
            let name = format!("vm{vm}-workload{}-alone", workload + 1);
            sets.push(one(name, SetRole::Alone, member(vm, workload)));
        }
    }
    for first in 0..workloads {
        for second in first..workloads {
            sets.push(SetPlan {
                name: format!("workload{}-beside-workload{}", first + 1, second + 1),
                role: SetRole::Together,
                members: vec![member(1, first), member(2, second)],
            });
        }
    }
    Ok(sets)
}

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

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod schedule_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_neighbours_is_one_set() {
        let names: Vec<String> = neighbours(&[3, 1, 3]).into_iter().map(|set| set.name).collect();
        assert_eq!(names, ["1", "3"]);
    }

    #[test]
    fn a_matrix_has_each_alone_in_both_machines_and_each_pair_once() {
        let sets = matrix(3).unwrap();
        let of_role = |role| sets.iter().filter(|set| set.role == role).count();
        assert_eq!((of_role(SetRole::Alone), of_role(SetRole::Together)), (6, 6));
        assert_eq!(matrix(MAX_WORKLOADS).unwrap().len(), 250);
        assert!(matrix(1).unwrap_err().contains("1 workloads"));
    }
}
