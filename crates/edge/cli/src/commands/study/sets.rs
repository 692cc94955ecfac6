//! What studies of several VMs at once have in common: their disks, their guests, their run.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use virtbench_lab::{Environment, Filesystem, GuestDisk};
use virtbench_record::{Plan, RunKind, SetPlan, SetRecord, TogetherPlan};
use virtbench_study::{
    Backing, Contents, FenceDisks, FenceRequest, Images, ImagesError, RunFolder, SetEvent, Setup,
    measure_sets, missing_sets, schedule_sets,
};
use virtbench_units::format_bytes;
use virtbench_workload::{JobSpec, Workload};

use super::sets_course::Course;
use super::watch::Watch;
use super::{adapters, common};
use crate::args::{NamedJob, PinArg, SetsArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::guests::Lab;
use crate::say::tell;
use crate::{interrupt, progress};

/// A disk that nothing uses still has a size, in bytes.
const UNUSED_DISK_BYTES: u64 = 1 << 20;

/// A study of several VMs, looked over and ready to be run.
pub struct SetStudy<'a> {
    pub kind: RunKind,
    /// Its name in the default run folder.
    pub name: &'static str,
    pub args: &'a SetsArgs,
    /// Measuring time, instead of what the workloads say.
    pub time_ns: Option<u64>,
    /// Time before measuring, instead of what the workloads say.
    pub ramp_ns: Option<u64>,
    pub vcpus: u32,
    pub memory_bytes: u64,
    pub jobs: Vec<NamedJob>,
    pub sets: Vec<SetPlan>,
}

impl SetStudy<'_> {
    /// Measures what is missing, then hands the folder over to `report`, also after a failure.
    pub fn execute(mut self, report: impl FnOnce(&Path) -> Outcome) -> Outcome {
        let out = common::folder_path(self.args.out.as_deref(), self.name);
        let setup = Setup::parse(&format!("{}@{}", self.args.adapter, self.args.backing))
            .map_err(|error| Failure::new(Kind::Usage, error))?;
        adapters::check_tools(std::slice::from_ref(&setup))?;
        self.fit_jobs()?;
        let vms = self.vms();
        self.check_memory(vms.len())?;
        let filesystem = self.filesystem()?;
        let provenance = self.provenance(&setup, filesystem, &vms, &out);
        if self.args.resume && is_complete(&out, &provenance)? {
            return report(&out);
        }
        let guest = self.args.guest(self.vcpus, self.memory_bytes);
        let lab = Lab::with_filesystems(&guest, &[setup.adapter], filesystem.as_slice())?;
        let mut folder: RunFolder<SetRecord> = common::open_folder(self.args.resume, &out, provenance)?;
        let measured = self.measure(&setup, filesystem, &vms, &out, &lab, &mut folder);
        let measured = common::keep_or_abandon(folder, measured)?;
        report(&out)?;
        measured
    }

    fn fit_jobs(&mut self) -> Outcome {
        self.jobs.iter_mut().try_for_each(|job| fit(&mut job.spec, self.time_ns, self.ramp_ns))
    }

    /// What the VMs are given to do, before each gets its seed and rate.
    pub fn jobs_as_given(mut self) -> Result<Vec<JobSpec>, Failure> {
        self.fit_jobs()?;
        Ok(self.jobs.iter().map(|job| sized(&job.spec, self.args.size)).collect())
    }

    /// The names of all VMs, in order.
    fn vms(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for member in self.sets.iter().flat_map(|set| &set.members) {
            if !names.contains(&member.vm) {
                names.push(member.vm.clone());
            }
        }
        names
    }

    /// More VMs than memory: said before anything is made.
    fn check_memory(&self, vms: usize) -> Outcome {
        let Some(free_bytes) = virtbench_lab::available_memory_bytes() else { return Ok(()) };
        let needed_bytes = (self.memory_bytes + common::QEMU_BYTES).saturating_mul(vms as u64);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        let fit = free_bytes / (self.memory_bytes + common::QEMU_BYTES);
        Err(Failure::message(
            Kind::Environment,
            format!(
                "{vms} VMs of {} need {} with QEMU's own, and this host has {} available: {fit} fit; lower the \
                 number of VMs or --memory",
                format_bytes(self.memory_bytes),
                format_bytes(needed_bytes),
                format_bytes(free_bytes)
            ),
        ))
    }

    fn filesystem(&self) -> Result<Option<Filesystem>, Failure> {
        let needs =
            |job: &NamedJob| matches!(&job.spec, JobSpec::Workload(spec) if spec.workload.needs_storage());
        let loads = |job: &NamedJob| matches!(job.spec, JobSpec::Load(_));
        if !self.jobs.iter().any(needs) {
            return Ok(None);
        }
        if self.jobs.iter().any(loads) {
            return Err(Failure::message(
                Kind::Usage,
                "a load writes over the disk that another workload has its files on: compare loads with memory, \
                 cpu or loads",
            ));
        }
        let found = Filesystem::find(&self.args.filesystem);
        found.map(Some).map_err(|error| Failure::new(Kind::Usage, error))
    }

    /// What is on each VM's disk, and how large it is.
    fn contents(&self, filesystem: Option<Filesystem>) -> (Contents, u64) {
        let loads = self.jobs.iter().any(|job| matches!(job.spec, JobSpec::Load(_)));
        match (loads, filesystem) {
            (true, _) => (Contents::Written, self.args.size),
            (false, Some(_)) => (Contents::Empty(filesystem), self.args.size),
            (false, None) => (Contents::Empty(None), UNUSED_DISK_BYTES),
        }
    }

    fn provenance(
        &self,
        setup: &Setup,
        filesystem: Option<Filesystem>,
        vms: &[String],
        out: &Path,
    ) -> virtbench_record::Provenance {
        let first = self.jobs.first().map(|job| &job.spec);
        let plan = Plan {
            grid: String::new(),
            blocks_bytes: Vec::new(),
            read_percents: Vec::new(),
            random_percents: Vec::new(),
            repetitions: self.args.repetitions,
            outstanding: 0,
            workers: 0,
            ramp_ns: first.map_or(0, JobSpec::ramp_ns),
            time_ns: first.map_or(0, JobSpec::expected_ns),
            size_bytes: self.contents(filesystem).1,
            environments: vms.to_vec(),
            seed: self.args.seed,
        };
        let target_dir = self.args.target_dir.as_deref().unwrap_or(out);
        let mut provenance = common::provenance_of(self.kind, plan, target_dir);
        provenance.together = Some(TogetherPlan {
            workloads: self.jobs.iter().map(|job| job.name.clone()).collect(),
            sets: self.sets.clone(),
            vcpus: self.vcpus,
            memory_bytes: self.memory_bytes,
            pinned: self.args.pin == PinArg::Auto,
            disk: setup.to_string(),
            filesystem: filesystem.map(|filesystem| filesystem.name().to_owned()),
        });
        provenance
    }

    fn measure(
        &self,
        setup: &Setup,
        filesystem: Option<Filesystem>,
        vms: &[String],
        out: &Path,
        lab: &Lab,
        folder: &mut RunFolder<SetRecord>,
    ) -> Outcome {
        let stop = interrupt::flag();
        let disks = self.disks(setup, filesystem, vms, out, stop).map_err(adapters::images_failure)?;
        let notes = disks.notes();
        folder.amend(|provenance| provenance.add_notes(notes)).map_err(common::folder_failure)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut environments: Vec<Box<dyn Environment>> = Vec::with_capacity(vms.len());
        for (index, (vm, disk)) in vms.iter().zip(&disks.guests).enumerate() {
            let held_to = match self.args.pin {
                PinArg::Auto => held_to(index, self.vcpus as usize, processors),
                PinArg::None => Vec::new(),
            };
            environments.push(lab.pinned_vm(vm, disk.clone(), None, held_to)?);
        }
        let jobs: Vec<JobSpec> = self.jobs.iter().map(|job| sized(&job.spec, self.args.size)).collect();
        let plan = folder.provenance().together.clone();
        let steps =
            plan.map_or_else(Vec::new, |plan| schedule_sets(&plan, self.args.repetitions, self.args.seed));
        let course = Course::new(&self.sets, &jobs, &steps);
        tell!("{} measurements of {} VMs{}", steps.len(), vms.len(), course.words());
        let mut watch = Watch::new(course.bar());
        let measured = measure_sets(folder, &mut environments, &jobs, stop, &mut |event| match event {
            SetEvent::Starting(vm) => watch.doing(format!("starting {vm}")),
            SetEvent::Measuring { done, set } => {
                course.show(watch.bar(), done);
                watch.doing(set.name.clone());
            }
            SetEvent::Again { set, why } => watch.say(&format!("{} is measured again: {why}", set.name)),
            SetEvent::Lost { vm, why } => watch.say(&format!("lost {vm}, the others went on: {why}")),
            SetEvent::Recorded(record) => watch.recorded(record.host.as_ref()),
        });
        watch.finish(folder)?;
        measured.map_err(common::study_failure)
    }

    /// A disk for each VM.
    fn disks(
        &self,
        setup: &Setup,
        filesystem: Option<Filesystem>,
        vms: &[String],
        out: &Path,
        stop: &AtomicBool,
    ) -> Result<Disks, ImagesError> {
        let (contents, size_bytes) = self.contents(filesystem);
        let (target_dir, run) = (self.args.target_dir.as_deref().unwrap_or(out), common::run_name(out));
        let bar = progress::bar(0, "making the disks");
        let show = |what: &str, done, total| {
            bar.set_message(what.to_owned());
            bar.set_length(total);
            bar.set_position(done);
        };
        let made = if let Backing::Fence(options) = &setup.backing {
            // One daemon for all: that is what they share.
            let written = out.join("fence.toml");
            let access = self.jobs.iter().find_map(|job| match &job.spec {
                JobSpec::Load(load) => Some(&load.access),
                JobSpec::Workload(_) => None,
            });
            let request = FenceRequest {
                folder: target_dir,
                run_name: &run,
                setup,
                options,
                names: vms,
                size_bytes,
                contents,
                warm: access,
                configuration: Some(&written),
            };
            let fence = FenceDisks::prepare(&request, stop, &mut |what, done, total| show(what, done, total));
            fence.map_err(ImagesError::from).map(Disks::of_fence)
        } else {
            Images::check_room(target_dir, &run, vms.len(), setup, size_bytes)?;
            let made = vms.iter().map(|vm| {
                let (name, setup) = (format!("{run}-{vm}"), std::slice::from_ref(setup));
                let mut show = |what: &str, done, total| show(&format!("{vm}: {what}"), done, total);
                Images::prepare(target_dir, &name, setup, size_bytes, contents, stop, &mut show)
            });
            made.collect::<Result<_, _>>().map(Disks::of_images)
        };
        bar.finish_and_clear();
        made
    }
}

/// The disks of all VMs, and what keeps them.
struct Disks {
    guests: Vec<GuestDisk>,
    images: Vec<Images>,
    _fence: Option<FenceDisks>,
}

impl Disks {
    fn of_images(images: Vec<Images>) -> Self {
        let first = |images: &Images| images.disks().first().map(|(disk, _)| disk.clone());
        Self { guests: images.iter().filter_map(first).collect(), images, _fence: None }
    }

    /// What a reader of the results should know about them.
    fn notes(&self) -> Vec<String> {
        self.images.iter().flat_map(|images| images.notes().to_vec()).collect()
    }

    fn of_fence(fence: FenceDisks) -> Self {
        Self { guests: fence.disks().to_vec(), images: Vec::new(), _fence: Some(fence) }
    }
}

/// The processors of a VM: as many as it has virtual ones, those after the last one's, round and round.
fn held_to(index: usize, vcpus: usize, processors: usize) -> Vec<usize> {
    let first = index * vcpus;
    (first..first + vcpus.min(processors)).map(|processor| processor % processors).collect()
}

/// Whether everything of the run in a folder is measured, so that no disk has to be made and nothing be booted.
fn is_complete(out: &Path, provenance: &virtbench_record::Provenance) -> Result<bool, Failure> {
    let folder: RunFolder<SetRecord> = RunFolder::resume(out, provenance).map_err(common::folder_failure)?;
    Ok(missing_sets(&folder).is_empty())
}

/// Gives a job the times of the command line, and checks it again.
fn fit(job: &mut JobSpec, time_ns: Option<u64>, ramp_ns: Option<u64>) -> Outcome {
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
    job.validate().map_err(|error| Failure::new(Kind::Usage, error))
}

/// The job on a disk of this size.
fn sized(job: &JobSpec, size_bytes: u64) -> JobSpec {
    let mut job = job.clone();
    if let JobSpec::Load(load) = &mut job {
        load.region_bytes = load.region_bytes.min(size_bytes);
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_given_out_in_turns() {
        assert_eq!(held_to(0, 1, 2), [0]);
        assert_eq!(held_to(1, 1, 2), [1]);
        assert_eq!(held_to(2, 1, 2), [0]);
        assert_eq!(held_to(1, 2, 8), [2, 3]);
        assert_eq!(held_to(3, 4, 2), [0, 1]);
    }
}
