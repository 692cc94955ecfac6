//! Measures sets of machines that run at one moment ([Multi-VM 2010]; [VirtualFence 2013], section 4).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use virtbench_lab::{Environment, LabError, MachineError, MeasuredTogether, TimeLimits};
use virtbench_record::{
    FORMAT, MemberMeasured, MemberRecord, MemberStatus, SetPlan, SetRecord, SetRole, TogetherPlan,
};
use virtbench_units::Random;
use virtbench_workload::JobSpec;

use crate::course::{Course, unix_ns};
use crate::folder::RunFolder;
use crate::machines::Machines;
use crate::schedule::shuffle;
use crate::share::{at_share, saturation};
use crate::study_error::StudyError;

/// How often a set is measured again because a clock ran wrong, or a guest fell silent before the start.
const MAX_ATTEMPTS: u32 = 3;
/// Guests that may be lost in one sitting: more than bad luck explains.
const MAX_LOST: usize = 10;
/// Between the seeds of one set and those of the next.
const SET_SEEDS: u64 = 1_000_000;
/// Between those and the seeds of arrivals.
const ARRIVAL_SEEDS: u64 = 500_000;
/// Making a workload's files takes longer than opening a disk, the more so with neighbours.
const LIMITS: TimeLimits = TimeLimits { prepare: Duration::from_secs(600), grace: Duration::from_secs(90) };

/// One repetition of one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetStep {
    /// Index of the set in the plan.
    pub set: usize,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// What happens, for whoever shows it.
#[derive(Debug)]
pub enum SetEvent<'a> {
    /// A machine is being started.
    Starting(&'a str),
    /// A step begins.
    Measuring {
        /// Steps measured so far, of this and earlier sittings.
        done: usize,
        /// The set.
        set: &'a SetPlan,
    },
    /// The set is measured again.
    Again {
        /// The set.
        set: &'a SetPlan,
        /// What went wrong the first time.
        why: &'a str,
    },
    /// A machine was lost while it was measured; the others went on.
    Lost {
        /// Its name.
        vm: &'a str,
        /// What the failure was.
        why: &'a str,
    },
    /// A step is in the folder.
    Recorded(&'a SetRecord),
}

/// Every step of a plan, in order: what finds a saturation first, then each repetition with its sets in
/// an order of its own, drawn from the seed, so that whatever drifts hits them alike.
#[must_use]
pub fn schedule_sets(plan: &TogetherPlan, repetitions: u32, seed: u64) -> Vec<SetStep> {
    let of_role = |saturation: bool| -> Vec<usize> {
        let all = plan.sets.iter().enumerate();
        all.filter(|(_, set)| (set.role == SetRole::Saturation) == saturation)
            .map(|(index, _)| index)
            .collect()
    };
    let mut random = Random::new(seed);
    let mut steps = Vec::new();
    for set in of_role(true) {
        steps.extend((0..repetitions).map(|repetition| SetStep { set, repetition }));
    }
    for repetition in 0..repetitions {
        let mut order = of_role(false);
        shuffle(&mut order, &mut random);
        steps.extend(order.into_iter().map(|set| SetStep { set, repetition }));
    }
    steps
}

/// What of a folder's plan is not measured yet, in order.
#[must_use]
pub fn missing_sets(folder: &RunFolder<SetRecord>) -> Vec<SetStep> {
    let provenance = folder.provenance();
    let Some(plan) = &provenance.together else { return Vec::new() };
    let measured: BTreeSet<(&str, u32)> =
        folder.records().iter().map(|record| (record.set.as_str(), record.repetition)).collect();
    let steps = schedule_sets(plan, provenance.plan.repetitions, provenance.plan.seed).into_iter();
    steps.filter(|step| !measured.contains(&(plan.sets[step.set].name.as_str(), step.repetition))).collect()
}

/// Measures whatever of the folder's plan is missing. `environments` are the machines by the names of the
/// plan's members, `jobs` the plan's workloads.
///
/// # Errors
/// The host, the folder, or too many guests failed, or `stop` was set. What was measured until then stays.
pub fn measure_sets(
    folder: &mut RunFolder<SetRecord>,
    environments: &mut [Box<dyn Environment>],
    jobs: &[JobSpec],
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(SetEvent<'_>),
) -> Result<(), StudyError> {
    let seed = folder.provenance().plan.seed;
    let Some(plan) = folder.provenance().together.clone() else { return Ok(()) };
    let missing = missing_sets(folder);
    let before = folder.records().len();
    let mut sitting = Sitting { machines: Machines::new(environments, Course::SIDE_BY_SIDE), lost: 0 };
    for (index, step) in missing.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(StudyError::Stopped);
        }
        let set = &plan.sets[step.set];
        on_event(SetEvent::Measuring { done: before + index, set });
        let jobs = jobs_of(set, &plan, jobs, folder.records(), seed, step.repetition)?;
        let record = sitting.measure(set, step.repetition, &jobs, folder, stop, on_event)?;
        folder.add(record)?;
        if let Some(record) = folder.records().last() {
            on_event(SetEvent::Recorded(record));
        }
    }
    sitting.machines.shut_down();
    Ok(())
}

/// What each member of a set is to do, its rate worked out from what its saturation was found to be.
pub(crate) fn jobs_of(
    set: &SetPlan,
    plan: &TogetherPlan,
    jobs: &[JobSpec],
    records: &[SetRecord],
    seed: u64,
    repetition: u32,
) -> Result<Vec<JobSpec>, StudyError> {
    // Each set makes accesses of its own: what an earlier one read would be found in caches by the next.
    let place = plan.sets.iter().position(|one| one.name == set.name).unwrap_or(0) as u64;
    let arrivals = seed.wrapping_add(u64::from(repetition));
    let seed = arrivals.wrapping_add(place.wrapping_mul(SET_SEEDS));
    let machines: BTreeSet<&str> =
        plan.sets.iter().flat_map(|set| &set.members).map(|member| member.vm.as_str()).collect();
    let members = set.members.iter().enumerate();
    members
        .map(|(index, member)| {
            let job = jobs.get(member.workload).cloned().ok_or(StudyError::NoWorkload(member.workload))?;
            // A machine's operations come at the same moments alone and beside others: chance alone would have one of
            // some hundred arrivals differ by a tenth from another.
            let machine = machines.iter().position(|name| *name == member.vm).unwrap_or(0) as u64;
            let arrivals = arrivals.wrapping_add(ARRIVAL_SEEDS + 1_000 * machine);
            // Machines that did the same at the same time would meet more often than chance has it.
            let job = with_seed(job, seed.wrapping_add(1_000 * index as u64), arrivals);
            let Some(percent) = member.share_percent else { return Ok(job) };
            let workload = &plan.workloads[member.workload];
            let most = saturation(plan, records, member.workload)
                .map_err(|why| StudyError::NoSaturation { workload: workload.clone(), why })?;
            at_share(job, most, percent).ok_or_else(|| StudyError::NoRate { workload: workload.clone() })
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

/// The machines of one sitting.
struct Sitting<'a> {
    machines: Machines<'a>,
    /// Guests lost so far.
    lost: usize,
}

impl Sitting<'_> {
    /// Measures a set until it can be used, or often enough.
    fn measure(
        &mut self,
        set: &SetPlan,
        repetition: u32,
        jobs: &[JobSpec],
        folder: &mut RunFolder<SetRecord>,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(SetEvent<'_>),
    ) -> Result<SetRecord, StudyError> {
        let indices: Vec<usize> = set
            .members
            .iter()
            .map(|member| {
                self.machines.index_of(&member.vm).ok_or_else(|| StudyError::NoMachine(member.vm.clone()))
            })
            .collect::<Result<_, _>>()?;
        let jobs: Vec<(usize, JobSpec)> = indices.iter().copied().zip(jobs.iter().cloned()).collect();
        let mut attempt = 1;
        loop {
            self.machines.wake_only(&indices, folder, &mut |name| on_event(SetEvent::Starting(name)))?;
            let together = match self.machines.measure_together(&jobs, LIMITS, stop) {
                Ok(together) => together,
                Err(LabError::Stopped) => return Err(StudyError::Stopped),
                Err(LabError::Machine { machine, source: MachineError::Refused { message, .. } }) => {
                    return Ok(unavailable(set, repetition, attempt, &machine, &message));
                }
                Err(error) if Machines::is_lost(&error) && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    on_event(SetEvent::Again { set, why: &error.to_string() });
                    self.discard(&error, &indices);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if stop.load(Ordering::Relaxed) {
                return Err(StudyError::Stopped);
            }
            let (record, lost) = record_of(set, repetition, attempt, together);
            for (position, why) in &lost {
                on_event(SetEvent::Lost { vm: &set.members[*position].vm, why });
                self.machines.discard(indices[*position]);
            }
            self.lost += lost.len();
            if self.lost > MAX_LOST {
                return Err(StudyError::TooManyLost(self.lost));
            }
            // A wrong clock is a matter of how a guest booted: only another boot mends it.
            let suspect: Vec<usize> = record
                .members
                .iter()
                .zip(&indices)
                .filter(|(member, _)| member.measured().is_some_and(MemberMeasured::has_suspect_clock))
                .map(|(_, index)| *index)
                .collect();
            suspect.iter().for_each(|index| self.machines.discard(*index));
            if suspect.is_empty() || attempt == MAX_ATTEMPTS {
                return Ok(record);
            }
            attempt += 1;
            let names: Vec<&str> = record
                .members
                .iter()
                .filter(|member| member.measured().is_some_and(MemberMeasured::has_suspect_clock))
                .map(|member| member.vm.as_str())
                .collect();
            let why = format!("the clock of {} ran wrong; booted anew", names.join(", "));
            on_event(SetEvent::Again { set, why: &why });
            let note = format!("{}: {why}, and the set measured again", set.name);
            folder.amend(|provenance| provenance.notes.push(note))?;
        }
    }

    /// Kills the machine that an error names; all of the set where it names none.
    fn discard(&mut self, error: &LabError, indices: &[usize]) {
        let named = match error {
            LabError::Machine { machine, .. } => self.machines.index_of(machine),
            _ => None,
        };
        match named {
            Some(index) => self.machines.discard(index),
            None => indices.iter().for_each(|index| self.machines.discard(*index)),
        }
    }
}

/// A set that cannot be started, and whose fault that is.
fn unavailable(set: &SetPlan, repetition: u32, attempts: u32, machine: &str, message: &str) -> SetRecord {
    let member = |vm: &str| {
        let why =
            if vm == machine { message.to_owned() } else { format!("{machine} could not start: {message}") };
        MemberRecord { vm: vm.to_owned(), status: MemberStatus::Unavailable { why } }
    };
    SetRecord {
        format: FORMAT,
        set: set.name.clone(),
        repetition,
        attempts,
        started_unix_ns: unix_ns(),
        host: None,
        processes: Vec::new(),
        members: set.members.iter().map(|plan| member(&plan.vm)).collect(),
    }
}

/// The record of what was measured, and the members that were lost meanwhile with the reason.
fn record_of(
    set: &SetPlan,
    repetition: u32,
    attempts: u32,
    together: MeasuredTogether,
) -> (SetRecord, Vec<(usize, String)>) {
    let (mut host, mut processes, mut lost) = (None, Vec::new(), Vec::new());
    let mut members = Vec::with_capacity(set.members.len());
    for (position, (plan, result)) in set.members.iter().zip(together.results).enumerate() {
        let status = match result {
            Ok(measured) => {
                host.get_or_insert(measured.host);
                if processes.is_empty() {
                    processes = measured.processes;
                }
                MemberStatus::Measured(Box::new(MemberMeasured {
                    outcome: measured.outcome,
                    host_elapsed_ns: measured.host_elapsed_ns,
                    clock: measured.clock,
                }))
            }
            Err(error) => {
                let why = error.to_string();
                // An agent that says why it failed is well, and its guest stays.
                if Machines::is_lost(&error) {
                    lost.push((position, why.clone()));
                }
                MemberStatus::Failed { why }
            }
        };
        members.push(MemberRecord { vm: plan.vm.clone(), status });
    }
    let record = SetRecord {
        format: FORMAT,
        set: set.name.clone(),
        repetition,
        attempts,
        started_unix_ns: together.started_unix_ns,
        host,
        processes,
        members,
    };
    (record, lost)
}

#[cfg(test)]
#[path = "sets_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "clocks_tests.rs"]
mod clocks_tests;
