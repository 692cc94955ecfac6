//! A study of machines that run at one moment: who runs beside whom, on which disks.

use std::path::{Path, PathBuf};

use virtbench_lab::{Filesystem, GuestDisk};
use virtbench_record::{ColocationPlan, Home, Plan, Provenance, SetPlan};
use virtbench_units::format_bytes;
use virtbench_workload::JobSpec;

use super::schedule::{Saturating, matrix, neighbours, pattern};
use crate::disks::backing::Backing;
use crate::disks::disk::Contents;
use crate::disks::images::{Images, ImagesError};
use crate::environments::{NamedEnvironment, homes, housed, in_words};
use crate::fence::{FenceDisks, FenceRequest};
use crate::guests::GuestOptions;
use crate::machines::{fit, sized};
use crate::runner::event::Event;
use crate::runner::prerequisites::{check_tools, guests_that_fit, lacking_memory};
use crate::runner::run::Run;
use crate::setup::Setup;
use crate::study_error::StudyError;

/// A disk that nothing uses still has a size, in bytes.
const UNUSED_DISK_BYTES: u64 = 1 << 20;

/// How long a deviation is measured when nothing is said: everything that runs together runs as long.
const DEVIATION_TIME_NS: u64 = 20_000_000_000;

/// How long each runs before: so that all of them run while each is measured.
const DEVIATION_RAMP_NS: u64 = 1_000_000_000;

/// A job with the words it was asked for in.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedJob {
    /// As on a command line.
    pub name: String,
    /// What it is. A load that has the whole disk has a region that is larger than any.
    pub spec: JobSpec,
}

/// What the machines are, and how they are measured.
#[derive(Debug, Clone)]
pub struct ColocationOptions {
    /// Each machine.
    pub guest: GuestOptions,
    /// Its disk.
    pub setup: Setup,
    /// Size of its disk, in bytes.
    pub size_bytes: u64,
    /// File system on it, `ext4` or `xfs`, where a workload needs one.
    pub filesystem: String,
    /// Folder for the disks, instead of the run folder: the storage under it is what is measured.
    pub target_dir: Option<PathBuf>,
    /// Where the machines live, in order, round and round: an environment as often as it takes machines in a row. None where all
    /// are guests that are booted here, with that disk.
    pub environments: Vec<NamedEnvironment>,
    /// Whether each machine is held to processors of the host.
    pub pinned: bool,
    /// Repetitions of each set.
    pub repetitions: u32,
    /// Measuring time in nanoseconds, instead of what the workloads say.
    pub time_ns: Option<u64>,
    /// Time before measuring in nanoseconds, instead of what the workloads say.
    pub ramp_ns: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Sets of machines, to be measured.
#[derive(Debug, Clone)]
pub struct Colocation {
    pub(super) study: fn(ColocationPlan) -> Plan,
    pub(super) jobs: Vec<NamedJob>,
    pub(super) sets: Vec<SetPlan>,
    pub(super) options: ColocationOptions,
}

impl Colocation {
    /// The same workload in so many machines at once, for each of these numbers ([Multi-VM 2010]).
    ///
    /// # Errors
    /// The workload cannot have the times that are asked for.
    pub fn neighbours(job: NamedJob, vms: &[u32], options: ColocationOptions) -> Result<Self, StudyError> {
        Self::new(Plan::Neighbours, vec![job], neighbours(vms), options)
    }

    /// A workload's saturation, then machines at these shares of it, in percent, each alone and all together
    /// ([VirtualFence 2013], section 4.3).
    ///
    /// # Errors
    /// The workload cannot run at a share, or not have the times that are asked for.
    pub fn pattern(
        job: NamedJob,
        shares: &[f64],
        saturating: Saturating,
        options: ColocationOptions,
    ) -> Result<Self, StudyError> {
        let sets = pattern(&job.name, &job.spec, shares, saturating).map_err(StudyError::input)?;
        Self::new(Plan::Deviation, vec![job], sets, timed(options))
    }

    /// Each workload alone in each of two machines, then each beside each.
    ///
    /// # Errors
    /// There are too few workloads or too many, or one cannot have the times that are asked for.
    pub fn matrix(jobs: Vec<NamedJob>, options: ColocationOptions) -> Result<Self, StudyError> {
        let sets = matrix(jobs.len()).map_err(StudyError::input)?;
        Self::new(Plan::Deviation, jobs, sets, timed(options))
    }

    fn new(
        study: fn(ColocationPlan) -> Plan,
        mut jobs: Vec<NamedJob>,
        sets: Vec<SetPlan>,
        options: ColocationOptions,
    ) -> Result<Self, StudyError> {
        jobs.iter_mut().try_for_each(|job| fit(&mut job.spec, options.time_ns, options.ramp_ns))?;
        let study = Self { study, jobs, sets, options };
        homes(&study.vms(), &study.options.environments).map_err(StudyError::input)?;
        Ok(study)
    }

    /// Where each machine lives, in words; nothing where all are guests that are booted here.
    #[must_use]
    pub fn homes_in_words(&self) -> Option<String> {
        Some(in_words(&self.homes())).filter(|words| !words.is_empty())
    }

    fn homes(&self) -> Vec<Home> {
        // They were checked when the study was made.
        homes(&self.vms(), &self.options.environments).unwrap_or_default()
    }

    /// The machines that live in environments, each by its own name.
    pub(super) fn housed(&self) -> Vec<NamedEnvironment> {
        housed(&self.vms(), &self.options.environments)
    }

    /// What the machines are given to do, before each gets its seed and rate.
    pub(super) fn specs(&self) -> Vec<JobSpec> {
        self.jobs.iter().map(|job| sized(&job.spec, self.options.size_bytes)).collect()
    }

    /// The names of all machines, in order.
    pub(super) fn vms(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for member in self.sets.iter().flat_map(|set| &set.members) {
            if !names.contains(&member.vm) {
                names.push(member.vm.clone());
            }
        }
        names
    }

    /// Looks for what the study needs of this host, before anything is made.
    ///
    /// # Errors
    /// A program, a device or memory is missing.
    pub(super) fn check_host(&self) -> Result<(), StudyError> {
        let others = &self.options.guest;
        let (vms, memory_bytes) = if self.options.environments.is_empty() {
            check_tools(std::slice::from_ref(&self.options.setup))?;
            (self.vms().len(), others.memory_bytes)
        } else {
            let housed = self.housed();
            let guests = housed.iter().filter_map(NamedEnvironment::guest);
            let memory: Vec<u64> = guests.map(|guest| guest.guest(others).memory_bytes).collect();
            (memory.len(), memory.into_iter().max().unwrap_or(0))
        };
        let Some((needed_bytes, free_bytes)) = lacking_memory(vms, memory_bytes) else { return Ok(()) };
        let why = format!(
            "{vms} VMs of {} need {} with QEMU's own, and this host has {} available: {} fit; lower the \
             number of VMs or --memory",
            format_bytes(memory_bytes),
            format_bytes(needed_bytes),
            format_bytes(free_bytes),
            guests_that_fit(memory_bytes, free_bytes)
        );
        Err(StudyError::Environment(why.into()))
    }

    /// The file system on the machines' disks, if a workload needs one.
    ///
    /// # Errors
    /// There is no such file system, or loads would write over it.
    pub(super) fn filesystem(&self) -> Result<Option<Filesystem>, StudyError> {
        let needs =
            |job: &NamedJob| matches!(&job.spec, JobSpec::Workload(spec) if spec.workload.needs_storage());
        if !self.jobs.iter().any(needs) {
            return Ok(None);
        }
        if self.has_loads() {
            return Err(StudyError::input(
                "a load writes over the disk that another workload has its files on: compare loads with memory, \
                 cpu or loads",
            ));
        }
        Filesystem::find(&self.options.filesystem).map(Some).map_err(StudyError::input)
    }

    fn has_loads(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job.spec, JobSpec::Load(_)))
    }

    /// What is on each machine's disk, and how large it is, in bytes.
    pub(super) fn contents(&self, filesystem: Option<Filesystem>) -> (Contents, u64) {
        match (self.has_loads(), filesystem) {
            (true, _) => (Contents::Written, self.options.size_bytes),
            (false, Some(_)) => (Contents::Empty(filesystem), self.options.size_bytes),
            (false, None) => (Contents::Empty(None), UNUSED_DISK_BYTES),
        }
    }

    /// The folder for the disks.
    pub(super) fn disks_folder<'f, 'a: 'f>(&'f self, run: &Run<'a>) -> &'f Path {
        run.disks_folder(self.options.target_dir.as_deref())
    }

    pub(super) fn provenance(&self, filesystem: Option<Filesystem>, run: &Run<'_>) -> Provenance {
        let first = self.jobs.first().map(|job| &job.spec);
        let plan = ColocationPlan {
            workloads: self.jobs.iter().map(|job| job.name.clone()).collect(),
            sets: self.sets.clone(),
            repetitions: self.options.repetitions,
            ramp_ns: first.map_or(0, JobSpec::ramp_ns),
            time_ns: first.map_or(0, JobSpec::expected_ns),
            vcpus: self.options.guest.vcpus,
            memory_bytes: self.options.guest.memory_bytes,
            pinned: self.options.pinned,
            disk: self.options.setup.to_string(),
            size_bytes: self.contents(filesystem).1,
            filesystem: filesystem.map(|filesystem| filesystem.name().to_owned()),
            seed: self.options.seed,
            homes: self.homes(),
        };
        run.provenance((self.study)(plan), self.disks_folder(run))
    }
}

/// The times of a study of deviation, where nothing is said.
fn timed(options: ColocationOptions) -> ColocationOptions {
    ColocationOptions {
        time_ns: options.time_ns.or(Some(DEVIATION_TIME_NS)),
        ramp_ns: options.ramp_ns.or(Some(DEVIATION_RAMP_NS)),
        ..options
    }
}

/// A disk for each machine, and what keeps them.
pub(super) struct Disks {
    pub(super) guests: Vec<GuestDisk>,
    images: Vec<Images>,
    _fence: Option<FenceDisks>,
}

impl Disks {
    /// Makes the disks of a study's machines, in the configuration that they have.
    ///
    /// # Errors
    /// Files or devices cannot be had, or it was to stop.
    pub(super) fn make(
        study: &Colocation,
        setup: &Setup,
        filesystem: Option<Filesystem>,
        run: &mut Run<'_>,
    ) -> Result<Self, ImagesError> {
        let (contents, size_bytes) = study.contents(filesystem);
        let (folder, run_name, vms) = (study.disks_folder(run), run.name(), study.vms());
        let observer = &mut *run.observer;
        let mut show = |what: &str, done, total| observer.event(Event::Making { what, done, total });
        if let Backing::Fence(fence) = &setup.backing {
            // One daemon for all: that is what they share.
            let written = run.out.join("fence.toml");
            let access = study.jobs.iter().find_map(|job| match &job.spec {
                JobSpec::Load(load) => Some(&load.access),
                JobSpec::Workload(_) => None,
            });
            let request = FenceRequest {
                folder,
                run_name: &run_name,
                adapter: setup.adapter,
                settings: &setup.settings,
                options: fence,
                names: &vms,
                size_bytes,
                contents,
                images: &[],
                warm: access,
                configuration: Some(&written),
            };
            let fence = FenceDisks::prepare(&request, run.stop, &mut show)?;
            return Ok(Self { guests: fence.disks().to_vec(), images: Vec::new(), _fence: Some(fence) });
        }
        Images::check_room(folder, &run_name, vms.len(), setup, size_bytes)?;
        let mut images = Vec::with_capacity(vms.len());
        for vm in &vms {
            let (name, setup) = (format!("{run_name}-{vm}"), std::slice::from_ref(setup));
            let mut show = |what: &str, done, total| show(&format!("{vm}: {what}"), done, total);
            images.push(Images::prepare(folder, &name, setup, size_bytes, contents, run.stop, &mut show)?);
        }
        let first = |images: &Images| images.disks().first().map(|(disk, _)| disk.clone());
        Ok(Self { guests: images.iter().filter_map(first).collect(), images, _fence: None })
    }

    /// What a reader of the results should know about them.
    pub(super) fn notes(&self) -> Vec<String> {
        self.images.iter().flat_map(|images| images.notes().to_vec()).collect()
    }
}
