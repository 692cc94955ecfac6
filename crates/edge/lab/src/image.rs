//! What guests boot: a kernel and an initramfs, made once and shared by many guests.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use virtbench_agents::{AgentError, own_agent};

use crate::adapters::{Adapter, DEFAULT_ADAPTER};
use crate::carried_files::CarriedFile;
use crate::filesystem::Filesystem;
use crate::initramfs;
use crate::kernel::{GuestKernel, KernelError};
use crate::memory_file::MemoryFile;
use crate::modules::ModuleError;
use crate::vmlinux::bootable;

/// Modules that every guest needs: its way to the host.
const BASE_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Modules of a guest with an appliance, beside its disks' and ext4.
const APPLIANCE_MODULES: [&str; 2] = ["virtio_net", "overlay"];
/// Modules of a guest with a screen: QEMU's standard graphics adapter, keyboard and pointer, and what an X server reads them by.
const SCREEN_MODULES: [&str; 3] = ["bochs", "virtio_input", "evdev"];

/// Why there is nothing to boot.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Its modules.
    #[error(transparent)]
    Modules(#[from] ModuleError),
    /// There is no agent to be init.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No memory for the initramfs.
    #[error("the guest's initramfs cannot be kept in memory: {0}; free some memory")]
    Memory(#[from] io::Error),
}

/// A kernel and an initramfs. Cloning shares them.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// The file to boot.
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: Arc<MemoryFile>,
    /// The size of the initramfs, in bytes.
    pub initramfs_bytes: u64,
    /// Whether it has the drivers of a screen, a keyboard and a pointer.
    pub(crate) has_screen: bool,
}

impl GuestImage {
    /// Makes the image of guests that may have any of these adapters.
    ///
    /// # Errors
    /// The kernel cannot be read, or lacks a driver.
    pub fn new(kernel: &GuestKernel, adapters: &[&Adapter]) -> Result<Self, ImageError> {
        Self::with_init(kernel, adapters, own_agent()?)
    }

    /// The same for guests that also mount any of these file systems.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_filesystems(
        kernel: &GuestKernel,
        adapters: &[&Adapter],
        filesystems: &[Filesystem],
    ) -> Result<Self, ImageError> {
        Self::build(kernel, adapters, filesystems, own_agent()?, &[])
    }

    /// The same for guests that have these files as well, in memory.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn carrying(
        kernel: &GuestKernel,
        adapters: &[&Adapter],
        filesystems: &[Filesystem],
        carried: &[CarriedFile],
    ) -> Result<Self, ImageError> {
        Self::build(kernel, adapters, filesystems, own_agent()?, carried)
    }

    /// The same for guests that run appliances: with a network interface, a root of two layers on ext4 and, with `screen`, what an
    /// X server needs.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn for_appliances(
        kernel: &GuestKernel,
        adapters: &[&Adapter],
        screen: bool,
    ) -> Result<Self, ImageError> {
        // The root is on a disk of this one in any case.
        let disks = [DEFAULT_ADAPTER].into_iter().chain(adapters.iter().copied());
        let disks = disks.flat_map(|adapter| adapter.modules).copied();
        let disks = disks.chain(Filesystem::Ext4.modules().iter().copied());
        let screen_modules = screen.then_some(SCREEN_MODULES).into_iter().flatten();
        let modules: Vec<&str> = disks.chain(APPLIANCE_MODULES).chain(screen_modules).collect();
        let image = Self::with_modules(kernel, modules, own_agent()?, &[])?;
        Ok(Self { has_screen: screen, ..image })
    }

    /// The same with another init than the agent, for tests of guests that misbehave.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_init(kernel: &GuestKernel, adapters: &[&Adapter], init: &[u8]) -> Result<Self, ImageError> {
        Self::build(kernel, adapters, &[], init, &[])
    }

    fn build(
        kernel: &GuestKernel,
        adapters: &[&Adapter],
        filesystems: &[Filesystem],
        init: &[u8],
        carried: &[CarriedFile],
    ) -> Result<Self, ImageError> {
        let drivers = adapters.iter().flat_map(|adapter| adapter.modules).copied();
        let filesystems = filesystems.iter().flat_map(|filesystem| filesystem.modules()).copied();
        Self::with_modules(kernel, drivers.chain(filesystems).collect(), init, carried)
    }

    fn with_modules(
        kernel: &GuestKernel,
        modules: Vec<&str>,
        init: &[u8],
        carried: &[CarriedFile],
    ) -> Result<Self, ImageError> {
        let modules: Vec<&str> = BASE_MODULES.into_iter().chain(modules).collect();
        let archive = initramfs::build(kernel, init, &modules, carried)?;
        Ok(Self {
            kernel: bootable(kernel)?,
            initramfs_bytes: archive.len() as u64,
            initramfs: Arc::new(MemoryFile::new("initramfs", &archive)?),
            has_screen: false,
        })
    }
}
