//! A machine that workloads on files and commands are run on: a VM that is made for it, or the agent on this host.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_lab::{
    Adapter, CarriedFile, Environment, Filesystem, GuestDisk, Machine, Native, TimeLimits, fill_holes,
    find_adapter, make_filesystem_with, measure,
};
use virtbench_record::{GuestFacts, HostUse, WorkloadOutcome};
use virtbench_workload::WorkloadSpec;

use super::disk_from::check_disk_from;
use super::error::ApplicationsError;
use super::options::VmOptions;
use crate::guests::{Extras, Guests};
use crate::runner::progress::Progress;

/// Emulated guests take long to make a workload's files, and to end.
const LIMITS: TimeLimits = TimeLimits { prepare: Duration::from_secs(300), grace: Duration::from_secs(120) };

/// A machine that workloads are run on one after the other.
pub(super) struct WorkloadMachine {
    machine: Box<dyn Machine>,
    /// The disk, which goes with it.
    disk: Disk,
}

impl WorkloadMachine {
    /// Boots a VM with a new file system on its disk, which begins with a copy of the folder `from`.
    pub(super) fn boot(
        options: &VmOptions,
        carried: &[CarriedFile],
        from: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, ApplicationsError> {
        if let Some(from) = from {
            check_disk_from(from, &options.folder)?;
        }
        let (guests, adapter, filesystem) = find_guests(options, carried, progress)?;
        let path = options.folder.join(format!("virtbench-vm-{}.img", std::process::id()));
        make_filesystem_with(&path, options.disk_bytes, filesystem, from)
            .map_err(|error| ApplicationsError::Environment(error.into()))?;
        // From here on a failure takes the disk away with it.
        let disk = Disk(Some(path.clone()));
        fill_holes(&path).map_err(|error| {
            ApplicationsError::Environment(format!("cannot write {}: {error}", path.display()).into())
        })?;
        progress.check()?;
        let machine = guests.vm("vm", GuestDisk::new(adapter, path), None, Vec::new())?.start()?;
        Ok(Self { machine, disk })
    }

    /// The agent on this host, with its files in `folder`.
    pub(super) fn native(folder: PathBuf) -> Result<Self, ApplicationsError> {
        Ok(Self { machine: Native::new("native", folder).start()?, disk: Disk(None) })
    }

    /// A machine that runs already.
    #[cfg(test)]
    pub(super) fn new(machine: Box<dyn Machine>) -> Self {
        Self { machine, disk: Disk(None) }
    }

    /// The guest's facts; nothing natively.
    pub(super) fn guest(&self) -> Option<GuestFacts> {
        self.machine.guest()
    }

    /// Runs it once, and says what the host did meanwhile. What was cut short by a stop is no outcome.
    pub(super) fn run(
        &mut self,
        spec: WorkloadSpec,
        progress: &Progress<'_>,
    ) -> Result<(WorkloadOutcome, HostUse), ApplicationsError> {
        let measured = measure(&mut *self.machine, spec, LIMITS, progress.stop);
        progress.check()?;
        let (_, measured) = measured?;
        Ok((measured.outcome, measured.host))
    }

    /// Ends it, and takes its disk away.
    pub(super) fn end(self) {
        self.machine.shut_down();
        drop(self.disk);
    }
}

/// Everything that the VM needs.
pub(super) fn find_guests(
    options: &VmOptions,
    carried: &[CarriedFile],
    progress: &mut Progress<'_>,
) -> Result<(Guests, &'static Adapter, Filesystem), ApplicationsError> {
    let adapter = find_adapter(&options.adapter).map_err(|error| ApplicationsError::Input(error.into()))?;
    let filesystem = Filesystem::find(&options.filesystem);
    let filesystem = filesystem.map_err(|error| ApplicationsError::Input(error.into()))?;
    let extras = Extras { filesystems: &[filesystem], carried };
    let remark = &mut |what: &str| progress.remark(what);
    Ok((Guests::find(&options.guest, &[adapter], extras, remark)?, adapter, filesystem))
}

/// A file that goes with this value.
struct Disk(Option<PathBuf>);

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
