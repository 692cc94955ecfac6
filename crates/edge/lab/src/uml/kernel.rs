//! Finds the kernel of User Mode Linux guests, and what they boot.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;
use virtbench_agents::{AgentError, own_agent};

use super::disk::UmlDiskKind;
use crate::cache::cache_directory;
use crate::carried_files::CarriedFile;
use crate::command::{CommandError, run_command_followed};
use crate::descriptors::MemoryFile;
use crate::filesystem::Filesystem;
use crate::image;
use crate::kernel::GuestKernel;
use crate::modules::{ModuleError, ModuleIndex};
use crate::qemu::output;

/// Where the distribution's package has its kernel, under the folder that it was unpacked to.
const PACKAGED: &str = "usr/bin/linux.uml";

/// The module with the checksum of file systems, in earlier kernels.
const CHECKSUM: &str = "crc32c_generic";

/// How long a kernel may take to say what it is.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no guest of User Mode Linux.
#[derive(Debug, Error)]
pub enum UmlError {
    /// No kernel was found.
    #[error("no User Mode Linux kernel found (looked at {}): `make uml` fetches one", tried.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NotFound {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// The program does not run or is something else.
    #[error("{} is no User Mode Linux kernel that runs here: {why}", path.display())]
    Unusable {
        /// The program.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// It lacks a driver.
    #[error(transparent)]
    Modules(#[from] ModuleError),
    /// There is no agent to be init.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No memory for the initramfs.
    #[error("the guest's initramfs cannot be kept in memory: {0}; free some memory")]
    Memory(io::Error),
}

/// A kernel that runs as a process, with its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UmlKernel {
    /// The program.
    pub program: PathBuf,
    /// Its release, such as `6.1.170`, as it says itself.
    pub release: String,
    /// The directory with its modules and `modules.dep`.
    pub modules: PathBuf,
}

impl UmlKernel {
    /// Finds the kernel: `$VIRTBENCH_UML`, else the one that `make uml-kernel` compiled, else the newest of the distribution's
    /// package that set-up unpacked into the cache, else that of an installed package.
    ///
    /// # Errors
    /// There is none, or the first that is there does not run.
    pub fn find() -> Result<Self, UmlError> {
        Self::find_for(&[])
    }

    /// The first of those that mounts these file systems: the compiled one is small and has ext4 alone. The first of all where none does,
    /// whose image then says what it lacks.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn find_for(filesystems: &[Filesystem]) -> Result<Self, UmlError> {
        let named = env::var_os("VIRTBENCH_UML").filter(|value| !value.is_empty()).map(PathBuf::from);
        let places = match named {
            Some(named) => vec![named],
            None => vec![
                cache_directory().join("uml-kernel").join(PACKAGED),
                cache_directory().join("uml").join(PACKAGED),
                Path::new("/").join(PACKAGED),
            ],
        };
        Self::first_for(filesystems, places)
    }

    fn first_for(filesystems: &[Filesystem], places: Vec<PathBuf>) -> Result<Self, UmlError> {
        let mut present = places.iter().filter(|place| place.is_file());
        let Some(first) = present.next() else {
            return Err(UmlError::NotFound { tried: places });
        };
        let first = Self::examine(first)?;
        if first.mounts(filesystems) {
            return Ok(first);
        }
        let other =
            present.filter_map(|place| Self::examine(place).ok()).find(|other| other.mounts(filesystems));
        Ok(other.unwrap_or(first))
    }

    fn mounts(&self, filesystems: &[Filesystem]) -> bool {
        let mut modules = filesystems.iter().flat_map(|filesystem| filesystem.modules());
        modules.all(|module| *module == CHECKSUM || self.has_module(module))
    }

    /// Whether it has a module of this name, built in or as a file.
    fn has_module(&self, name: &str) -> bool {
        ModuleIndex::read(&self.modules).and_then(|index| index.load_order(&[name])).is_ok()
    }

    fn examine(program: &Path) -> Result<Self, UmlError> {
        let unusable = |why: String| UmlError::Unusable { path: program.to_owned(), why };
        let said = output(program, &["--version"]).map_err(|error| unusable(error.to_string()))?;
        let release = said.trim().to_owned();
        let is_release = |text: &str| {
            text.starts_with(|letter: char| letter.is_ascii_digit())
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._+~".contains(letter))
        };
        if !is_release(&release) {
            return Err(unusable(format!("asked for its version it says {release:?}")));
        }
        let root = program.ancestors().nth(3).unwrap_or(Path::new("/"));
        // The package keeps them apart from those of the host's kernels.
        let modules = ["usr/lib/uml/modules", "lib/modules"].map(|folder| root.join(folder).join(&release));
        let missing = format!("its modules are not in {}", modules[0].display());
        let modules = modules.into_iter().find(|folder| folder.join("modules.dep").is_file());
        let program = program.to_owned();
        Ok(Self { program, release, modules: modules.ok_or_else(|| unusable(missing))? })
    }
}

/// What a kernel was configured to have, as it says itself.
fn configuration(program: &Path) -> Result<String, CommandError> {
    let mut command = Command::new(program);
    command.arg("--showconfig");
    let mut said = String::new();
    let mut told = |line: &str| {
        said.push_str(line);
        said.push('\n');
    };
    run_command_followed(
        command,
        "asking for its configuration",
        ANSWER_LIMIT,
        &AtomicBool::new(false),
        &mut told,
    )?;
    Ok(said)
}

/// What keeps a kernel of this configuration from having a network; nothing if it can.
fn network_trouble(config: &str) -> Option<String> {
    let has = |line| config.lines().any(|own| own == line);
    if !has("CONFIG_UML_NET_VECTOR=y") {
        return Some("it has no network driver (CONFIG_UML_NET_VECTOR)".into());
    }
    // vector_poll locks a queue that the driver has on sockets alone; without CONFIG_SMP locks are nothing.
    has("CONFIG_SMP=y").then(|| {
        "it is built for several processors (CONFIG_SMP), and its network driver panics then: `make uml-kernel` compiles one that \
         is not"
            .into()
    })
}

/// A kernel with an initramfs that has the agent as init. Cloning shares it.
#[derive(Debug, Clone)]
pub struct UmlImage {
    pub(super) kernel: UmlKernel,
    pub(super) initramfs: Arc<MemoryFile>,
}

impl UmlImage {
    /// The image of guests with these modules.
    ///
    /// # Errors
    /// The kernel lacks one of them, or no agent was built.
    pub fn new(kernel: &UmlKernel, modules: &[&str]) -> Result<Self, UmlError> {
        Self::with(kernel, modules, &[])
    }

    /// The image of guests with such a disk, that mount any of these file systems and have these files as well, in memory.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn carrying(
        kernel: &UmlKernel,
        disk: UmlDiskKind,
        filesystems: &[Filesystem],
        carried: &[CarriedFile],
    ) -> Result<Self, UmlError> {
        // Later kernels have the checksum that ext4 and xfs ask for built in, under another name.
        let is_there = |module: &&&str| **module != CHECKSUM || kernel.has_module(CHECKSUM);
        let filesystems = filesystems.iter().flat_map(|filesystem| filesystem.modules()).filter(is_there);
        let modules: Vec<&str> = disk.modules().iter().chain(filesystems).copied().collect();
        Self::with(kernel, &modules, carried)
    }

    fn with(kernel: &UmlKernel, modules: &[&str], carried: &[CarriedFile]) -> Result<Self, UmlError> {
        let files = GuestKernel {
            image: kernel.program.clone(),
            release: kernel.release.clone(),
            modules: kernel.modules.clone(),
        };
        let archive = image::build(&files, own_agent()?, modules, carried)?;
        let initramfs = MemoryFile::new("initramfs", &archive).map_err(UmlError::Memory)?;
        Ok(Self { kernel: kernel.clone(), initramfs: Arc::new(initramfs) })
    }

    /// The image of guests that run appliances, whose root of two layers on ext4 is on such a disk.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn for_appliances(kernel: &UmlKernel, disk: UmlDiskKind) -> Result<Self, UmlError> {
        let unusable = |why: String| UmlError::Unusable { path: kernel.program.clone(), why };
        let config = configuration(&kernel.program).map_err(|error| unusable(error.to_string()))?;
        network_trouble(&config).map_or(Ok(()), |why| Err(unusable(why)))?;
        let modules = [disk.modules(), &["ext4", "overlay"]].concat();
        Self::new(kernel, &modules)
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &UmlKernel {
        &self.kernel
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Something that says it is such a kernel and has these modules built in.
    fn kernel(at: &Path, release: &str, modules: &[&str]) -> PathBuf {
        let program = at.join(PACKAGED);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, format!("#!/bin/sh\necho {release}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let kept = at.join("usr/lib/uml/modules").join(release);
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("modules.dep"), "").unwrap();
        let lines = modules.iter().map(|module| format!("kernel/fs/{module}/{module}.ko\n"));
        fs::write(kept.join("modules.builtin"), lines.collect::<String>()).unwrap();
        program
    }

    #[test]
    fn the_first_kernel_that_mounts_what_is_asked_for_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let small = kernel(&folder.path().join("small"), "7.2.1", &["ext4"]);
        let large = kernel(&folder.path().join("large"), "7.2.2", &["ext4", "xfs"]);
        let found = |filesystems: &[Filesystem], places: &[&PathBuf]| {
            UmlKernel::first_for(filesystems, places.iter().copied().cloned().collect())
                .map(|kernel| kernel.release)
        };
        let gone = folder.path().join("gone");
        assert_eq!(found(&[], &[&gone, &small, &large]).unwrap(), "7.2.1");
        assert_eq!(found(&[Filesystem::Ext4], &[&small, &large]).unwrap(), "7.2.1");
        assert_eq!(found(&[Filesystem::Ext4, Filesystem::Xfs], &[&small, &large]).unwrap(), "7.2.2");
        assert_eq!(found(&[Filesystem::Xfs], &[&small]).unwrap(), "7.2.1");
        assert!(matches!(found(&[], &[&gone]), Err(UmlError::NotFound { tried }) if tried == [gone.clone()]));
    }

    #[test]
    fn a_kernel_whose_network_would_panic_or_is_not_there_is_refused() {
        let trouble = |config| network_trouble(config).unwrap_or_default();
        assert_eq!(trouble("# CONFIG_SMP is not set\nCONFIG_UML_NET_VECTOR=y\n"), "");
        assert!(trouble("CONFIG_SMP=y\nCONFIG_UML_NET_VECTOR=y\n").contains("make uml-kernel"));
        assert!(trouble("# CONFIG_UML_NET_VECTOR is not set").contains("no network driver"));
    }
}
