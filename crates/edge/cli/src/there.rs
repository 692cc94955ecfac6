//! Runs a workload on files, or a command, in a VM that is made for it, or natively by the same agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use virtbench_lab::{
    CarriedFile, Environment, Filesystem, GuestDisk, Machine, Native, TimeLimits, fill_holes, find_adapter,
    make_filesystem_with, measure,
};
use virtbench_record::{Measured, WorkloadOutcome};
use virtbench_workload::WorkloadSpec;

use crate::args::there::ThereArgs;
use crate::exit::{Failure, Kind};
use crate::guests::Lab;
use crate::interrupt;

/// Emulated guests take long to make a workload's files, and to end.
const LIMITS: TimeLimits = TimeLimits { prepare: Duration::from_secs(300), grace: Duration::from_secs(120) };

/// A machine that workloads are run on one after the other.
pub struct There {
    machine: Box<dyn Machine>,
    /// The disk, which goes with it.
    disk: Option<PathBuf>,
}

impl There {
    /// Boots a VM with a new file system on its disk, which begins with a copy of `from`.
    pub fn boot(
        args: &ThereArgs,
        vcpus: u32,
        carried: &[CarriedFile],
        from: Option<&Path>,
    ) -> Result<Self, Failure> {
        let adapter = find_adapter(&args.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
        let filesystem = Filesystem::find(&args.filesystem);
        let filesystem = filesystem.map_err(|error| Failure::new(Kind::Usage, error))?;
        let lab = Lab::carrying(&args.guest(vcpus), &[adapter], &[filesystem], carried)?;
        let disk = args.folder()?.join(format!("virtbench-vm-{}.img", std::process::id()));
        // From here on a failure takes the disk away with it.
        let disk = Disk(Some(disk));
        let path = disk.0.clone().unwrap_or_default();
        make_filesystem_with(&path, args.size, filesystem, from)
            .map_err(|error| Failure::new(Kind::Environment, error))?;
        fill_holes(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut vm = lab.vm("vm", GuestDisk::new(adapter, path), None)?;
        let machine = vm.start().map_err(|error| Failure::new(Kind::Guest, error))?;
        Ok(Self { machine, disk: disk.keep() })
    }

    /// The agent on this host, with its files in `folder`.
    pub fn native(folder: PathBuf) -> Result<Self, Failure> {
        let machine = Native::new("native", folder).start();
        let machine = machine.map_err(|error| Failure::new(Kind::Environment, error))?;
        Ok(Self { machine, disk: None })
    }

    /// What executes its instructions; nothing natively.
    pub fn accelerator(&self) -> Option<String> {
        self.machine.guest().map(|guest| guest.accelerator.name)
    }

    /// Runs it once.
    pub fn run(&mut self, spec: WorkloadSpec) -> Result<Measured<WorkloadOutcome>, Failure> {
        let measured = measure(&mut *self.machine, spec, LIMITS, interrupt::flag());
        let (_, measured) = measured.map_err(|error| {
            let kind = if interrupt::requested() { Kind::Interrupted } else { Kind::Guest };
            Failure::new(kind, error)
        })?;
        Ok(measured)
    }

    /// Ends it, and takes its disk away.
    pub fn end(self) {
        self.machine.shut_down();
        drop(Disk(self.disk));
    }
}

/// A file that is removed, unless it is kept.
struct Disk(Option<PathBuf>);

impl Disk {
    fn keep(mut self) -> Option<PathBuf> {
        self.0.take()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
