//! Measures sets of machines that run at one moment ([Multi-VM 2010]; [VirtualFence 2013], section 4).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use virtbench_lab::{Environment, LabError, MachineError, MeasuredTogether, TimeLimits};
use virtbench_record::{FORMAT, MemberMeasured, MemberRecord, MemberStatus, SetPlan, SetRecord};
use virtbench_workload::JobSpec;

use super::jobs::jobs_of;
use super::schedule::missing_sets;
use crate::course::{Course, unix_ns};
use crate::event::{Event, Observer};
use crate::folder::RunFolder;
use crate::machines::Machines;
use crate::study_error::StudyError;

/// How often a set is measured again because a clock ran wrong, or a guest fell silent before the start.
const MAX_ATTEMPTS: u32 = 3;
/// Guests that may be lost in one sitting: more than bad luck explains.
const MAX_LOST: usize = 10;
/// Making a workload's files takes longer than opening a disk, the more so with neighbours.
const LIMITS: TimeLimits = TimeLimits { prepare: Duration::from_secs(600), grace: Duration::from_secs(90) };

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
    observer: &mut dyn Observer,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.colocation().cloned() else { return Ok(()) };
    let missing = missing_sets(folder);
    let before = folder.records().len();
    let mut sitting = Sitting { machines: Machines::new(environments, Course::SIDE_BY_SIDE), lost: 0 };
    for (index, step) in missing.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(StudyError::Stopped);
        }
        let set = &plan.sets[step.set];
        observer.event(Event::Measuring { done: before + index, what: &set.name });
        let jobs = jobs_of(set, &plan, jobs, folder.records(), step.repetition)?;
        let record = sitting.measure(set, step.repetition, &jobs, folder, stop, observer)?;
        folder.add(record)?;
        if let Some(record) = folder.records().last() {
            observer.event(Event::Recorded(record.host.as_ref()));
        }
    }
    sitting.machines.shut_down();
    Ok(())
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
        observer: &mut dyn Observer,
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
            self.machines.wake_only(&indices, folder, &mut |name| observer.event(Event::Starting(name)))?;
            let together = match self.machines.measure_together(&jobs, LIMITS, stop) {
                Ok(together) => together,
                Err(LabError::Stopped) => return Err(StudyError::Stopped),
                Err(LabError::Machine { machine, source: MachineError::Refused { message, .. } }) => {
                    return Ok(unavailable(set, repetition, attempt, &machine, &message));
                }
                Err(error) if Machines::is_lost(&error) && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    observer.event(Event::Remark(&format!("{} is measured again: {error}", set.name)));
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
                let vm = &set.members[*position].vm;
                observer.event(Event::Remark(&format!("lost {vm}, the others went on: {why}")));
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
            observer.event(Event::Remark(&format!("{} is measured again: {why}", set.name)));
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
#[path = "measure_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "clocks_tests.rs"]
mod clocks_tests;
