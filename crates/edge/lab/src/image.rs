//! What guests boot: a kernel and an initramfs, made once and shared by many guests.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::adapters::Adapter;
use crate::agents::own_agent;
use crate::carried_files::CarriedFile;
use crate::filesystem::Filesystem;
use crate::initramfs;
use crate::kernel::{GuestKernel, KernelError};
use crate::memory_file::MemoryFile;
use crate::modules::ModuleError;
use crate::vmlinux::bootable;

/// Modules that every guest needs: its way to the host.
const BASE_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Why there is nothing to boot.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Its modules.
    #[error(transparent)]
    Modules(#[from] ModuleError),
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
}

impl GuestImage {
    /// Makes the image of guests that may have any of these adapters.
    ///
    /// # Errors
    /// The kernel cannot be read, or lacks a driver.
    pub fn new(kernel: &GuestKernel, adapters: &[&Adapter]) -> Result<Self, ImageError> {
        Self::with_init(kernel, adapters, own_agent())
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
        Self::build(kernel, adapters, filesystems, own_agent(), &[])
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
        Self::build(kernel, adapters, filesystems, own_agent(), carried)
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
        let modules: Vec<&str> = BASE_MODULES.into_iter().chain(drivers).chain(filesystems).collect();
        let archive = initramfs::build(kernel, init, &modules, carried)?;
        Ok(Self {
            kernel: bootable(kernel)?,
            initramfs_bytes: archive.len() as u64,
            initramfs: Arc::new(MemoryFile::new("initramfs", &archive)?),
        })
    }
}
