//! A platform whose management operations are measured, as a user names it, and its tenants: machines under a load of their own meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_lab::{
    Assignment, GuestImage, LabError, LibvirtAddress, Machine, TimeLimits, find_kernel, measure_together,
};
use virtbench_platforms::{
    LibvirtOptions, LibvirtPlatform, OnOpenStack, OnProxmox, OnVsphere, Platform, ProxmoxOptions,
    VsphereOptions,
};
use virtbench_record::{CloneKind, TenantMeasured};
use virtbench_workload::{AccessLine, AccessSpec, JobSpec, LoadSpec};

use crate::environments::MadeEnvironments;
use crate::guests::GuestChoice;
use crate::machines::{fit, sized};
use crate::runner::event::Event;
use crate::runner::progress::nanoseconds;
use crate::runner::run::Run;
use crate::studies::colocation::NamedJob;
use crate::study_error::StudyError;

/// How addresses of vSphere, of Proxmox VE and of OpenStack begin.
const VSPHERE: &str = "vsphere+";

const PROXMOX: &str = "proxmox:";

const OPENSTACK: &str = "openstack:";

/// The network of servers whose address names none: nobody logs in to them.
const NETWORK: &str = "none";

/// Until a control plane has answered; removing what killed runs have left takes longer where there is much of it.
const CONNECT_LIMIT: Duration = Duration::from_secs(600);

/// A platform, and what VMs there are made of.
#[derive(Debug, Clone)]
pub struct PlatformChoice {
    /// Its address: `libvirt+URI`, `vsphere+https://USER@HOST/sdk`, `proxmox:HOST` or `openstack:CLOUD`.
    pub address: String,
    /// Where VMs are moved to and back.
    pub destination: Option<String>,
    /// How clones are made, in turn.
    pub clones: Vec<CloneKind>,
    /// What has an array clone a volume.
    pub array_command: Option<String>,
    /// Memory of each VM, in bytes.
    pub memory_bytes: u64,
    /// Disk of each VM, in bytes.
    pub disk_bytes: u64,
    /// What runs them, where the platform leaves that open.
    pub guests: GuestChoice,
}

impl PlatformChoice {
    /// Looks whether addresses and ways to clone go together, before anything is done.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), StudyError> {
        let usage = |why: &str| Err(StudyError::input(why));
        let ways = &self.clones;
        if ways.iter().enumerate().any(|(index, way)| ways[..index].contains(way)) {
            return usage("--clone: each way once");
        }
        if ways.contains(&CloneKind::Array) != self.array_command.is_some() {
            return usage(
                "--clone array and --array-command belong together: the command tells the storage to clone $SOURCE as $TARGET",
            );
        }
        let of_cluster = if self.address.starts_with(VSPHERE) {
            OnVsphere::check(&self.address)
        } else if self.address.starts_with(PROXMOX) {
            OnProxmox::check(&self.address)
        } else if self.address.starts_with(OPENSTACK) {
            OnOpenStack::check(&self.address)
        } else {
            address(&self.address)?;
            return self.destination.as_deref().map_or(Ok(()), |to| address(to).map(drop));
        };
        of_cluster.map_err(|error| StudyError::input(error.to_string()))?;
        if self.destination.is_some() {
            return usage(
                "vSphere, Proxmox VE and OpenStack migrate among the hosts of a cluster: leave --destination out",
            );
        }
        if self.address.starts_with(OPENSTACK) && ways.iter().any(|way| *way != CloneKind::Full) {
            return usage("OpenStack makes servers of images, and its hosts decide how: take --clone full");
        }
        if ways.iter().any(|way| matches!(way, CloneKind::Reflink | CloneKind::Array)) {
            return usage(
                "vSphere and Proxmox VE make full and linked clones, and copy by the array's own means where they can: take --clone \
                 full,linked",
            );
        }
        Ok(())
    }

    /// Connects to the platform, which sweeps what killed runs have left.
    ///
    /// # Errors
    /// It cannot be reached, refuses, or it was to stop.
    pub fn connect(&self, run: &mut Run<'_>) -> Result<Box<dyn Platform>, StudyError> {
        if self.address.starts_with(VSPHERE) {
            let options = VsphereOptions { memory_bytes: self.memory_bytes, disk_bytes: self.disk_bytes };
            let platform = OnVsphere::connect(&self.address, options, Instant::now() + CONNECT_LIMIT)?;
            return Ok(Box::new(platform));
        }
        if self.address.starts_with(PROXMOX) {
            let options = ProxmoxOptions { memory_bytes: self.memory_bytes, disk_bytes: self.disk_bytes };
            let platform = OnProxmox::connect(&self.address, options, Instant::now() + CONNECT_LIMIT)?;
            return Ok(Box::new(platform));
        }
        if self.address.starts_with(OPENSTACK) {
            let platform = OnOpenStack::connect(&self.address, NETWORK, Instant::now() + CONNECT_LIMIT)?;
            return Ok(Box::new(platform));
        }
        let to = address(&self.address)?;
        let destination = self.destination.as_deref().map(address).transpose()?;
        let options = self.options(&to, destination)?;
        Ok(Box::new(on_libvirt(&to, &options, run)?))
    }

    fn options(
        &self,
        address: &LibvirtAddress,
        destination: Option<LibvirtAddress>,
    ) -> Result<LibvirtOptions, StudyError> {
        let guest = if LibvirtPlatform::has_real_guests(address)? {
            let kernel = find_kernel(self.guests.kernel.as_deref()).map_err(LabError::from)?;
            let image = GuestImage::new(&kernel, &[]).map_err(LabError::from)?;
            Some((kernel, image))
        } else {
            None
        };
        Ok(LibvirtOptions {
            destination,
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk_bytes,
            clones: self.clones.clone(),
            array_command: self.array_command.clone(),
            accelerator: self.guests.accelerator.of_qemu()?,
            guest,
        })
    }
}

fn address(text: &str) -> Result<LibvirtAddress, StudyError> {
    let usage = |why: String| StudyError::input(why);
    if !text.starts_with(LibvirtAddress::PREFIX) {
        return Err(usage(format!(
            "{text} is no platform: give libvirt+URI, such as libvirt+qemu:///system, vsphere+https://USER@HOST/sdk, proxmox:HOST, or openstack:CLOUD"
        )));
    }
    let (address, others) = LibvirtAddress::parse(text).map_err(|error| usage(error.to_string()))?;
    match others.first() {
        Some((name, _)) => Err(usage(format!("{text}: a platform has no setting {name}; it has pool=NAME"))),
        None => Ok(address),
    }
}

fn on_libvirt(
    address: &LibvirtAddress,
    options: &LibvirtOptions,
    run: &mut Run<'_>,
) -> Result<LibvirtPlatform, StudyError> {
    let (stop, observer) = (run.stop, &mut *run.observer);
    let connected = LibvirtPlatform::connect(address, options, &mut |what, done, total| {
        observer.event(Event::Making { what, done, total });
        !stop.load(Ordering::Relaxed)
    });
    connected.map_err(|error| if stop.load(Ordering::Relaxed) { StudyError::Stopped } else { error.into() })
}

/// Where no workload is given: block of a tenant's operations, in bytes, and its shares of reads and of random seeks, in percent.
const LOAD: (u64, f64, f64) = (4096, 70.0, 100.0);

/// Machines that run, each with a disk of its own.
pub struct Tenants {
    // Before their disks go.
    machines: Vec<Box<dyn Machine>>,
    made: MadeEnvironments,
    job: JobSpec,
}

/// What tenants do: the workload that is given, or small random I/O, one at a time, on the whole disk of so many bytes.
///
/// # Errors
/// The workload keeps files, for which tenants' disks have no file system.
pub fn tenant_job(given: Option<&NamedJob>, size_bytes: u64) -> Result<JobSpec, StudyError> {
    let (block, reads, randoms) = LOAD;
    let access = AccessSpec::single(AccessLine::new(block, reads, randoms));
    let usual = || LoadSpec { outstanding: 1, ..LoadSpec::new(access, size_bytes) }.into();
    match given.map(|job| &job.spec) {
        Some(JobSpec::Workload(spec)) if spec.workload.needs_storage() => Err(StudyError::input(
            "a tenant's disk has no file system: take a load (load:size=4k,read=70), memory or cpu",
        )),
        given => Ok(sized(&given.cloned().unwrap_or_else(usual), size_bytes)),
    }
}

impl Tenants {
    /// Starts a machine in each environment, which does this job meanwhile.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(mut made: MadeEnvironments, job: JobSpec) -> Result<Self, StudyError> {
        let started = made.environments.iter_mut().map(|environment| environment.start());
        let mut machines = started.collect::<Result<Vec<_>, LabError>>()?;
        for machine in &mut machines {
            let name = machine.name().to_owned();
            let target = machine.make_target(&mut |_, _| true);
            target.map_err(|source| LabError::Machine { machine: name, source })?;
        }
        Ok(Self { machines, made, job })
    }

    /// The folder of this host in which their disks lie, where some do.
    pub(super) fn storage(&self) -> Option<&Path> {
        self.made.storage()
    }

    /// What can be loaded from another thread.
    pub(super) fn lend(&mut self) -> Lent<'_> {
        Lent { machines: &mut self.machines, job: &self.job }
    }
}

/// The machines of tenants, whose disks stay where they are.
pub(super) struct Lent<'a> {
    machines: &'a mut [Box<dyn Machine>],
    job: &'a JobSpec,
}

impl Lent<'_> {
    /// Gives all their job at one moment, for so long.
    ///
    /// # Errors
    /// One fails, or `stop` was set.
    pub(super) fn load(
        self,
        length: Duration,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<TenantMeasured>, StudyError> {
        let mut spec = self.job.clone();
        fit(&mut spec, Some(nanoseconds(length)), Some(0))?;
        if let JobSpec::Load(load) = &mut spec {
            load.seed = seed;
        }
        let names: Vec<String> = self.machines.iter().map(|machine| machine.name().to_owned()).collect();
        let assignments = self
            .machines
            .iter_mut()
            .map(|machine| Assignment { machine: machine.as_mut(), spec: spec.clone() });
        let together = measure_together(assignments.collect(), &[], TimeLimits::default(), stop)?;
        let measured = names.into_iter().zip(together.results).map(|(name, result)| {
            let outcome = result?.outcome;
            let per_s =
                outcome.throughput().ok_or_else(|| LabError::OtherOutcome { machine: name.clone() })?;
            Ok(TenantMeasured { name, iops: per_s, latency_ns: outcome.latency_ns() })
        });
        measured.collect()
    }
}
