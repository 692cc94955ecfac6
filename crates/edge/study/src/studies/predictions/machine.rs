//! Where workloads on files and commands are run: a VM that is made for it, or the agent on this host, each on a file system of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_lab::{
    CarriedFile, Environment, Filesystem, Kind, LoopDevice, Machine, Native, OwnFilesystem, TimeLimits,
    Translator, fill_holes, make_filesystem_with, measure, see_alone,
};
use virtbench_record::{GuestFacts, HostUse};

use super::error::ApplicationsError;
use super::processors::FewProcessors;
use super::storage::{DiskServer, Storage, StorageVm};
use crate::guests::{Extras, GuestOptions, Guests};
use crate::runner::progress::Progress;

/// Emulated guests take long to make a workload's files, and to end.
const LIMITS: TimeLimits = TimeLimits { prepare: Duration::from_secs(300), grace: Duration::from_secs(120) };

/// How many VMs this process has at once at most.
const MOST_VMS: u32 = 16;

/// A machine that workloads are run on one after the other.
pub(super) struct WorkloadMachine {
    machine: Box<dyn Machine>,
    /// What serves its disk, where something does.
    server: Option<DiskServer>,
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
        let (guests, filesystem) = find_guests(options, carried, progress)?;
        let path = (0..MOST_VMS)
            .map(|number| options.folder.join(format!("virtbench-vm-{}-{number}.img", std::process::id())))
            .find(|path| !path.exists())
            .ok_or_else(|| {
                ApplicationsError::Environment(format!("{MOST_VMS} VMs have disks already").into())
            })?;
        make_filesystem_with(&path, options.disk_bytes, filesystem, from)
            .map_err(|error| ApplicationsError::Environment(error.into()))?;
        // From here on a failure takes the disk away with it.
        let disk = Disk(Some(path.clone()));
        // What the host has still to write would slow down what is measured first.
        let filled = fill_holes(&path).and_then(|()| fs::File::open(&path)?.sync_all());
        filled.map_err(|error| {
            ApplicationsError::Environment(format!("cannot write {}: {error}", path.display()).into())
        })?;
        progress.check()?;
        let file = (path.as_path(), options.disk_bytes);
        let StorageVm { machine, server } = StorageVm::boot(&guests, &options.storage, file, progress)?;
        Ok(Self { machine, server, disk })
    }

    /// A machine that runs already, without a disk of ours.
    pub(super) fn new(machine: Box<dyn Machine>) -> Self {
        Self { machine, server: None, disk: Disk(None) }
    }

    /// The guest's facts; nothing natively.
    pub(super) fn guest(&self) -> Option<GuestFacts> {
        self.machine.guest()
    }

    /// Runs a workload or a load once, and says what the host did meanwhile. What was cut short by a stop is no outcome.
    pub(super) fn run<K: Kind>(
        &mut self,
        spec: K,
        progress: &Progress<'_>,
    ) -> Result<(K::Outcome, HostUse), ApplicationsError> {
        let measured = measure(&mut *self.machine, spec, LIMITS, progress.stop);
        progress.check()?;
        let (_, measured) = measured?;
        Ok((measured.outcome, measured.host))
    }

    /// Ends it, and takes its disk away.
    pub(super) fn end(self) {
        self.machine.shut_down();
        drop(self.server);
        drop(self.disk);
    }
}

/// Everything that the VM needs.
pub(super) fn find_guests(
    options: &VmOptions,
    carried: &[CarriedFile],
    progress: &mut Progress<'_>,
) -> Result<(Guests, Filesystem), ApplicationsError> {
    let setup = &options.storage.setup;
    let filesystem = Filesystem::find(&options.filesystem);
    let filesystem = filesystem.map_err(|error| ApplicationsError::Input(error.into()))?;
    let extras = Extras { filesystems: &[filesystem], carried };
    let remark = &mut |what: &str| progress.remark(what);
    let guests = Guests::find(&options.guest, &[setup.adapter], extras, remark)?;
    match setup.not_in_uml().filter(|_| guests.are_of_uml()) {
        Some(what) => {
            let why = format!("{}: guests of User Mode Linux do not have {what}", options.storage);
            Err(ApplicationsError::Input(why.into()))
        }
        None => Ok((guests, filesystem)),
    }
}

/// What translates programs on this host as guests of this kind do, where they are emulated; a remark where it cannot be had.
pub(super) fn translator(guests: &Guests, progress: &mut Progress<'_>) -> Option<Translator> {
    let found = guests.are_emulated().then(Translator::find)?;
    let unknown = "how much longer user code takes under a translator is not tried";
    found.map_err(|why| progress.remark(&format!("{unknown}: {why}"))).ok()
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

/// Refuses a folder `from` that is to be copied onto a disk in the folder `target` if the copy would meet
/// the disk: the file would be copied into itself.
pub(super) fn check_disk_from(from: &Path, target: &Path) -> Result<(), ApplicationsError> {
    let canonical = |path: &Path| {
        fs::canonicalize(path).map_err(|error| {
            ApplicationsError::Input(format!("cannot use {}: {error}", path.display()).into())
        })
    };
    let (source, holder) = (canonical(from)?, canonical(target)?);
    if !source.is_dir() {
        let why = format!("--disk-from {}: it is no folder", from.display());
        return Err(ApplicationsError::Input(why.into()));
    }
    if !holder.starts_with(&source) {
        return Ok(());
    }
    let why = format!(
        "--disk-from {}: the VM's disk is made in {}, which is in it, and would be copied into itself: give \
         another --target-dir",
        from.display(),
        holder.display()
    );
    Err(ApplicationsError::Input(why.into()))
}

/// The VM that applications are run in.
#[derive(Debug, Clone)]
pub struct VmOptions {
    /// Its processors, memory, kernel and accelerator.
    pub guest: GuestOptions,
    /// Size of its disk, in bytes.
    pub disk_bytes: u64,
    /// Its disk.
    pub storage: Storage,
    /// File system on its disk, `ext4` or `xfs`.
    pub filesystem: String,
    /// Folder for its disk: the storage under it is what is measured, natively too.
    pub folder: PathBuf,
    /// How long a command may take there, in nanoseconds.
    pub limit_ns: u64,
    /// Reference applications as TOML, instead of those that virtbench brings along.
    pub references: Option<String>,
}

/// Where native runs are to be made.
#[derive(Debug)]
pub struct NativeSide {
    parent: PathBuf,
    size_bytes: u64,
    filesystem: Filesystem,
    own: bool,
    processors: usize,
}

/// A folder for such runs; what is in it goes with this value.
pub(super) struct NativeFolder {
    folder: PathBuf,
    own: Option<OwnFilesystem>,
    processors: usize,
}

impl NativeSide {
    /// On as many processors as the VM has, on file systems of its kind and size, in files beside its disk; in plain folders there, with a
    /// remark where that is not permitted. From here on, what this thread starts sees mounts of its own: call it before anything
    /// that starts processes.
    ///
    /// # Errors
    /// There is no such kind of file system.
    pub fn new(options: &VmOptions, progress: &mut Progress<'_>) -> Result<Self, ApplicationsError> {
        let filesystem = Filesystem::find(&options.filesystem);
        let filesystem = filesystem.map_err(|error| ApplicationsError::Input(error.into()))?;
        let parent = options.folder.clone();
        let alone = LoopDevice::check().map_err(Into::into).and_then(|()| see_alone());
        if let Err(why) = &alone {
            progress.remark(&format!(
                "natively in folders under {}, as there can be no file system like the VM's: {why}",
                parent.display()
            ));
        }
        let processors = options.guest.vcpus.max(1) as usize;
        Ok(Self { parent, size_bytes: options.disk_bytes, filesystem, own: alone.is_ok(), processors })
    }

    /// An empty place.
    ///
    /// # Errors
    /// The disk is full, or there is no loop device.
    pub(super) fn place(&self) -> Result<NativeFolder, ApplicationsError> {
        let folder = self.parent.join(format!("virtbench-native-{}", std::process::id()));
        let own = if self.own {
            let mounted = OwnFilesystem::mount(&folder, self.size_bytes, self.filesystem, None);
            Some(mounted.map_err(|error| ApplicationsError::Environment(error.into()))?)
        } else {
            std::fs::create_dir_all(&folder).map_err(|error| {
                ApplicationsError::Environment(format!("cannot make {}: {error}", folder.display()).into())
            })?;
            None
        };
        Ok(NativeFolder { folder, own, processors: self.processors })
    }
}

impl NativeFolder {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What this thread starts while that exists has as many processors as the VM.
    pub(super) fn few_processors(&self) -> Result<FewProcessors, ApplicationsError> {
        FewProcessors::hold(self.processors)
    }

    /// The agent on this host, with its files in the folder `work` of this place.
    pub(super) fn machine(&self, work: &Path) -> Result<WorkloadMachine, ApplicationsError> {
        self.start(Native::new("native", work.to_owned()))
    }

    /// The same where system calls are counted, readings of the clock among them.
    pub(super) fn counting_machine(&self, work: &Path) -> Result<WorkloadMachine, ApplicationsError> {
        self.start(Native::new("native", work.to_owned()).without_vdso())
    }

    /// The same where programs run under a translator of instructions.
    pub(super) fn translating_machine(
        &self,
        work: &Path,
        translator: &Translator,
    ) -> Result<WorkloadMachine, ApplicationsError> {
        self.start(Native::new("native", work.to_owned()).translated(translator.clone()))
    }

    fn start(&self, mut native: Native) -> Result<WorkloadMachine, ApplicationsError> {
        let _few = self.few_processors()?;
        Ok(WorkloadMachine::new(native.start()?))
    }
}

impl Drop for NativeFolder {
    fn drop(&mut self) {
        if self.own.is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_the_vm_s_disk_in_it_is_refused_by_whatever_name() {
        let place = tempfile::tempdir().unwrap();
        let (from, beside) = (place.path().join("from"), place.path().join("from-not"));
        let inside = from.join("inside");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(&beside).unwrap();
        let alias = place.path().join("alias");
        std::os::unix::fs::symlink(&from, &alias).unwrap();
        for (from, target) in [
            (&from, &from),
            (&from, &inside),
            (&alias, &inside),
            (&from, &alias),
            (&beside.join("../from"), &from),
        ] {
            let said = check_disk_from(from, target).unwrap_err().to_string();
            assert!(said.contains("copied into itself") && said.contains("--target-dir"), "{said}");
        }
        check_disk_from(&from, &beside).unwrap();
        check_disk_from(&inside, &from).unwrap();
        assert!(check_disk_from(&place.path().join("none"), &from).is_err());
    }
}
