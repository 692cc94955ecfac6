//! Measures sets of machines that run at one moment ([Multi-VM 2010]; [VirtualFence 2013], section 4).

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_lab::{Environment, LabError, MachineError, MeasuredTogether, TimeLimits};
use virtbench_model::is_busy;
use virtbench_model::together::far_hosts;
use virtbench_record::{
    ColocationPlan, FORMAT, HostUse, MemberMeasured, MemberRecord, MemberStatus, SetPlan, SetRecord, SetStart,
};
use virtbench_workload::JobSpec;

use super::schedule::{ScheduledSet, jobs_of, missing_sets};
use crate::machines::Machines;
use crate::runner::event::Observer;
use crate::runner::progress::{Course, Progress, unix_ns};
use crate::runner::steps::{InOrder, measure_in_order};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

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
    let done = folder.records().len();
    let machines = Machines::new(environments, Course::SIDE_BY_SIDE);
    let mut sitting = BootedMachines { plan: &plan, jobs, machines, lost: 0 };
    if !plan.homes.is_empty() {
        // A host that cannot be reached is known before anything is measured.
        sitting.start_all(&missing, folder, stop, observer)?;
    }
    measure_in_order((done, &missing), &mut sitting, folder, &mut Progress { stop, observer })?;
    sitting.machines.shut_down();
    Ok(())
}

/// Says of other hosts than this one that other programs use them, in words that are the same each time.
fn busy_elsewhere(plan: &ColocationPlan, record: &SetRecord) -> Vec<String> {
    let busy = far_hosts(plan, record).into_iter().filter(|(_, host)| is_busy(host));
    busy.map(|(environment, _)| {
        format!("{environment}: other programs use more than a tenth of its processors: the figures show that as well")
    })
    .collect()
}

/// The machines of one sitting.
struct BootedMachines<'a> {
    plan: &'a ColocationPlan,
    /// The plan's workloads.
    jobs: &'a [JobSpec],
    machines: Machines<'a>,
    /// Guests lost so far.
    lost: usize,
}

impl InOrder<SetRecord> for BootedMachines<'_> {
    type Step = ScheduledSet;

    fn words(&self, step: &ScheduledSet) -> String {
        self.plan.sets[step.set].name.clone()
    }

    fn measure(
        &mut self,
        step: &ScheduledSet,
        folder: &mut RunFolder<SetRecord>,
        progress: &mut Progress<'_>,
    ) -> Result<SetRecord, StudyError> {
        let set = &self.plan.sets[step.set];
        let jobs = jobs_of(set, self.plan, self.jobs, folder.records(), step.repetition)?;
        let record = self.usable(set, step.repetition, &jobs, folder, progress)?;
        for note in busy_elsewhere(self.plan, &record) {
            if !folder.provenance().notes.contains(&note) {
                progress.remark(&format!("note: {note}"));
                folder.amend(|provenance| provenance.notes.push(note))?;
            }
        }
        Ok(record)
    }

    fn host<'r>(&self, _: &ScheduledSet, record: &'r SetRecord) -> Option<&'r HostUse> {
        record.host.as_ref()
    }
}

impl BootedMachines<'_> {
    /// Starts every machine of these steps.
    fn start_all(
        &mut self,
        steps: &[ScheduledSet],
        folder: &mut RunFolder<SetRecord>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), StudyError> {
        let members = steps.iter().flat_map(|step| &self.plan.sets[step.set].members);
        let wanted: BTreeSet<usize> =
            members.filter_map(|member| self.machines.index_of(&member.vm)).collect();
        self.machines.wake_only(&wanted.into_iter().collect::<Vec<_>>(), folder, stop, observer)
    }

    /// Measures a set until it can be used, or often enough.
    fn usable(
        &mut self,
        set: &SetPlan,
        repetition: u32,
        jobs: &[JobSpec],
        folder: &mut RunFolder<SetRecord>,
        progress: &mut Progress<'_>,
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
            self.machines.wake_only(&indices, folder, progress.stop, progress.observer)?;
            let together = match self.machines.measure_together(&jobs, LIMITS, progress.stop) {
                Ok(together) => together,
                Err(LabError::Stopped) => return Err(StudyError::Stopped),
                Err(LabError::Machine { machine, source: MachineError::Refused { message, .. } }) => {
                    return Ok(unavailable(set, repetition, attempt, &machine, &message));
                }
                Err(error) if Machines::is_lost(&error) && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    progress.remark(&format!("{} is measured again: {error}", set.name));
                    self.discard(&error, &indices);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            progress.check()?;
            let labels: Vec<String> = set.members.iter().map(|member| label(folder, &member.vm)).collect();
            let places: Vec<RunsOn> = indices.iter().map(|index| self.place(*index, folder)).collect();
            let (record, lost) = record_of(set, repetition, attempt, &places, together);
            for (position, why) in &lost {
                let vm = &labels[*position];
                progress.remark(&format!("lost {vm}, the others went on: {why}"));
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
                .filter(|(member, _)| has_suspect_clock(member))
                .map(|(_, index)| *index)
                .collect();
            suspect.iter().for_each(|index| self.machines.discard(*index));
            if suspect.is_empty() || attempt == MAX_ATTEMPTS {
                return Ok(record);
            }
            attempt += 1;
            let suspects = record.members.iter().zip(&labels).filter(|(member, _)| has_suspect_clock(member));
            let names: Vec<&str> = suspects.map(|(_, label)| label.as_str()).collect();
            let why = format!("the clock of {} ran wrong; booted anew", names.join(", "));
            progress.remark(&format!("{} is measured again: {why}", set.name));
            let note = format!("{}: {why}, and the set measured again", set.name);
            folder.amend(|provenance| provenance.notes.push(note))?;
        }
    }

    /// What a machine's figures are told with.
    fn place(&self, index: usize, folder: &RunFolder<SetRecord>) -> RunsOn {
        let in_environments =
            folder.provenance().plan.colocation().is_some_and(|plan| !plan.homes.is_empty());
        match (in_environments, self.machines.is_on_host(index)) {
            (false, _) => RunsOn::Guest,
            (true, true) => RunsOn::ThisHost,
            (true, false) => RunsOn::OtherHost,
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

/// Where a machine of a set runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsOn {
    /// In a study of guests of this host.
    Guest,
    /// On this host, in a study of environments.
    ThisHost,
    /// On another machine.
    OtherHost,
}

fn has_suspect_clock(member: &MemberRecord) -> bool {
    member.measured().is_some_and(MemberMeasured::has_suspect_clock)
}

/// A machine's name with its environment's.
fn label(folder: &RunFolder<SetRecord>, vm: &str) -> String {
    folder.provenance().plan.colocation().map_or_else(|| vm.to_owned(), |plan| plan.label(vm))
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
        start: None,
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
    places: &[RunsOn],
    together: MeasuredTogether,
) -> (SetRecord, Vec<(usize, String)>) {
    let (mut host, mut processes, mut lost) = (None, Vec::new(), Vec::new());
    let mut members = Vec::with_capacity(set.members.len());
    let each = set.members.iter().zip(places).zip(together.results).zip(together.starts);
    for (position, (((plan, place), result), start)) in each.enumerate() {
        let status = match result {
            Ok(measured) => {
                let own = match place {
                    RunsOn::OtherHost => Some(measured.host),
                    RunsOn::Guest | RunsOn::ThisHost => {
                        host.get_or_insert(measured.host);
                        if processes.is_empty() {
                            processes = measured.processes;
                        }
                        None
                    }
                };
                MemberStatus::Measured(Box::new(MemberMeasured {
                    outcome: measured.outcome,
                    host_elapsed_ns: measured.host_elapsed_ns,
                    clock: measured.clock,
                    start: start.filter(|_| *place != RunsOn::Guest),
                    host: own,
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
    let started = |member: &MemberRecord| {
        let measured = member.measured()?;
        Some((measured.start?, measured.host_elapsed_ns))
    };
    let record = SetRecord {
        format: FORMAT,
        set: set.name.clone(),
        repetition,
        attempts,
        started_unix_ns: together.started_unix_ns,
        start: SetStart::of(&members.iter().filter_map(started).collect::<Vec<_>>()),
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
