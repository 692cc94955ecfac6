//! A run of sets of machines, from the plan to the last record.

use virtbench_lab::{Environment, Filesystem};
use virtbench_record::{SetPlan, SetRecord};
use virtbench_workload::JobSpec;

use super::measure::measure_sets;
use super::schedule::{ScheduledSet, missing_sets, schedule_sets};
use super::study::{Colocation, Disks};
use crate::environments::FoundEnvironments;
use crate::guests::{Extras, Guests, GuestsError, WantedAccelerator};
use crate::runner::event::{Estimate, Event};
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// What a measurement takes beside its job: boots, where they are needed, and files that are made.
const BESIDE_NS: u64 = 5_000_000_000;

impl Colocation {
    /// What is to be measured, and about how long that takes.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let of_repetition =
            |repetition| (0..self.sets.len()).map(move |set| ScheduledSet { set, repetition });
        let steps: Vec<ScheduledSet> = (0..self.options.repetitions).flat_map(of_repetition).collect();
        estimate(&self.sets, &self.specs(), &steps, self.vms().len())
    }

    /// Measures whatever is missing in the run folder. Where nothing is, no disk is made and no guest booted.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was measured. Any other failure is
    /// the answer, and the folder holds what was measured until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        self.check_host()?;
        let filesystem = self.filesystem()?;
        let provenance = self.provenance(filesystem, run);
        if let Some(homes) = self.homes_in_words() {
            run.remark(&format!("machines: {homes}"));
        }
        let mut folder: RunFolder<SetRecord> = run.open(provenance)?;
        if missing_sets(&folder).is_empty() {
            return Ok(Ok(()));
        }
        let measured = if self.options.environments.is_empty() {
            self.measure_guests(filesystem, &mut folder, run)
        } else {
            self.measure_housed(filesystem, &mut folder, run)
        };
        run.end(folder, measured)
    }

    /// In guests that are booted here, one for each machine.
    fn measure_guests(
        &self,
        filesystem: Option<Filesystem>,
        folder: &mut RunFolder<SetRecord>,
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let extras = Extras { filesystems: filesystem.as_slice(), carried: &[] };
        let guests = self.find_guests(extras, run)?;
        let disks = Disks::make(self, &guests.setup(&self.options.setup), filesystem, run)?;
        folder.amend(|provenance| provenance.add_notes(disks.notes()))?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let vms = self.vms();
        let mut environments: Vec<Box<dyn Environment>> = Vec::with_capacity(vms.len());
        for (index, (vm, disk)) in vms.iter().zip(&disks.guests).enumerate() {
            let held_to = if self.options.pinned {
                held_to(index, self.options.guest.vcpus as usize, processors)
            } else {
                Vec::new()
            };
            environments.push(guests.vm(vm, disk.clone(), None, held_to)?);
        }
        self.measure(folder, &mut environments, run)
    }

    /// What the machines are, if they are guests: QEMU's where User Mode Linux has not their disk.
    fn find_guests(&self, extras: Extras<'_>, run: &mut Run<'_>) -> Result<Guests, GuestsError> {
        let (guest, setup) = (&self.options.guest, &self.options.setup);
        let (adapters, remark) = (&[setup.adapter], &mut |what: &str| run.remark(what));
        match (guest.accelerator, setup.not_in_uml()) {
            (WantedAccelerator::Uml, Some(lacks)) => {
                Err(GuestsError::NoUml(format!("its guests cannot have {lacks} ({setup})").into()))
            }
            (_, Some(_)) => Guests::of_qemu(guest, adapters, extras, remark),
            (_, None) => Guests::find(guest, adapters, extras, remark),
        }
    }

    /// In environments, each machine with a disk, file or folder of its own.
    fn measure_housed(
        &self,
        filesystem: Option<Filesystem>,
        folder: &mut RunFolder<SetRecord>,
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let (contents, size_bytes) = self.contents(filesystem);
        let (place, run_name, machines) = (self.disks_folder(run), run.name(), self.housed());
        let mut environments: Vec<Box<dyn Environment>> = Vec::with_capacity(machines.len());
        let mut kept = Vec::with_capacity(machines.len());
        let mut remark = |what: &str| run.remark(what);
        let found = FoundEnvironments::find_with(&machines, &self.options.guest, contents, &mut remark)?;
        for (machine, found) in machines.iter().zip(found.singly()) {
            let observer = &mut *run.observer;
            let mut show = |what: &str, done, total| {
                observer.event(Event::Making { what: &format!("{}: {what}", machine.name), done, total });
            };
            let run_name = format!("{run_name}-{}", machine.name);
            let mut made = found.make((place, &run_name), size_bytes, run.stop, &mut show)?;
            environments.append(&mut made.environments);
            kept.push(made);
        }
        folder.amend(|provenance| kept.iter().for_each(|made| provenance.add_notes(made.notes())))?;
        self.measure(folder, &mut environments, run)
    }

    fn measure(
        &self,
        folder: &mut RunFolder<SetRecord>,
        environments: &mut [Box<dyn Environment>],
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let jobs = self.specs();
        let steps = folder.provenance().plan.colocation().map_or_else(Vec::new, schedule_sets);
        run.observer.event(Event::Planned(&estimate(&self.sets, &jobs, &steps, environments.len())));
        measure_sets(folder, environments, &jobs, run.stop, run.observer)
    }
}

/// The processors of a machine: as many as it has virtual ones, those after the last one's, round and round.
fn held_to(index: usize, vcpus: usize, processors: usize) -> Vec<usize> {
    let first = index * vcpus;
    (first..first + vcpus.min(processors)).map(|processor| processor % processors).collect()
}

/// How long these steps take, through sets whose members do these jobs.
fn estimate(sets: &[SetPlan], jobs: &[JobSpec], steps: &[ScheduledSet], vms: usize) -> Estimate {
    let takes_ns = |step: &ScheduledSet| -> Option<u64> {
        let members = sets.get(step.set)?.members.iter();
        let all: Option<Vec<u64>> = members.map(|member| known_ns(jobs.get(member.workload)?)).collect();
        Some(BESIDE_NS + all?.into_iter().max()?)
    };
    Estimate::of_each(&steps.iter().map(takes_ns).collect::<Vec<_>>(), vms)
}

/// How long a job takes with its ramp-up, in nanoseconds, where that is known beforehand.
fn known_ns(job: &JobSpec) -> Option<u64> {
    let known = match job {
        JobSpec::Load(_) => true,
        JobSpec::Workload(spec) => spec.time_ns.is_some() || spec.workload.run_ns().is_some(),
    };
    known.then(|| job.ramp_ns().saturating_add(job.expected_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::{MemberPlan, SetRole};
    use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

    #[test]
    fn processors_are_given_out_in_turns() {
        assert_eq!(held_to(0, 1, 2), [0]);
        assert_eq!(held_to(1, 1, 2), [1]);
        assert_eq!(held_to(2, 1, 2), [0]);
        assert_eq!(held_to(1, 2, 8), [2, 3]);
        assert_eq!(held_to(3, 4, 2), [0, 1]);
    }

    #[test]
    fn machines_that_run_together_take_as_long_as_the_slowest() {
        let job = |seconds: u64| {
            let access = AccessSpec::single(AccessLine::new(4096, 100.0, 100.0));
            let times = (1_000_000_000, seconds * 1_000_000_000);
            JobSpec::Load(LoadSpec { ramp_ns: times.0, time_ns: times.1, ..LoadSpec::new(access, 1 << 20) })
        };
        let member = |workload| MemberPlan { vm: format!("vm{workload}"), workload, share_percent: None };
        let set = |members| SetPlan { name: "s".into(), role: SetRole::Together, members };
        let sets = [set(vec![member(0)]), set(vec![member(1)]), set(vec![member(0), member(1)])];
        let steps = [0, 1, 2].map(|set| ScheduledSet { set, repetition: 0 });
        let found = estimate(&sets, &[job(4), job(10)], &steps, 2);
        // Alone 4 + 1 and 10 + 1 s, together 10 + 1 s, with 5 s beside each.
        assert_eq!(found.moments_ns, Some(vec![0, 10_000_000_000, 26_000_000_000, 42_000_000_000]));
        assert_eq!(found.to_string(), "3 measurements of 2 VMs, about 42s");
    }
}
