//! What guests boot: a kernel and an initramfs, the guest's whole user space, made once and shared by many guests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use cpio::newc::{Builder, trailer};
use thiserror::Error;
use virtbench_agent::MODULE_LIST;
use virtbench_agents::{AgentError, own_agent};

use crate::adapters::{Adapter, DEFAULT_ADAPTER};
use crate::carried_files::CarriedFile;
use crate::descriptors::MemoryFile;
use crate::filesystem::Filesystem;
use crate::kernel::{GuestKernel, KernelError, bootable, unpack};
use crate::modules::{ModuleError, ModuleIndex};

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
        let archive = build(kernel, init, &modules, carried)?;
        Ok(Self {
            kernel: bootable(kernel)?,
            initramfs_bytes: archive.len() as u64,
            initramfs: Arc::new(MemoryFile::new("initramfs", &archive)?),
            has_screen: false,
        })
    }
}

/// The largest single module, unpacked, in bytes.
const MAX_MODULE_BYTES: usize = 64 << 20;

const DIRECTORY: u32 = 0o040_755;

const PROGRAM: u32 = 0o100_755;

const PLAIN: u32 = 0o100_644;

/// Builds the archive (newc, not packed: unpacking it would cost an emulated guest more than reading
/// it) with `agent` as init, `modules` with all they depend on, and `carried` under their own names.
///
/// # Errors
/// The kernel lacks a module, or a file cannot be read.
pub(crate) fn build(
    kernel: &GuestKernel,
    agent: &[u8],
    modules: &[&str],
    carried: &[CarriedFile],
) -> Result<Vec<u8>, ModuleError> {
    let order = ModuleIndex::read(&kernel.modules)?.load_order(modules)?;
    let mut contents = Vec::with_capacity(order.len());
    let mut list = String::new();
    for file in &order {
        let path = kernel.modules.join(file);
        let bytes = fs::read(&path).and_then(|packed| unpack(&packed, MAX_MODULE_BYTES));
        let bytes = bytes.map_err(|source| ModuleError::Unreadable { path, source })?;
        // The guest loads what is unpacked already; a flat name is enough, and unique in a kernel.
        let name = file.rsplit('/').next().unwrap_or(file);
        let name = format!("modules/{}.ko", name.split(".ko").next().unwrap_or(name));
        list += &format!("/{name}\n");
        contents.push((name, bytes));
    }
    let mut archive = Archive::default();
    let filled = archive
        .add("init", PROGRAM, agent)
        .and_then(|()| archive.add(MODULE_LIST.trim_start_matches('/'), PLAIN, list.as_bytes()))
        .and_then(|()| archive.add("modules", DIRECTORY, b""))
        .and_then(|()| contents.iter().try_for_each(|(name, bytes)| archive.add(name, PLAIN, bytes)))
        .and_then(|()| carry(&mut archive, carried))
        .and_then(|()| archive.finish());
    filled.map_err(|source| ModuleError::Unreadable { path: kernel.modules.clone(), source })
}

/// Adds files and, before them, the folders that they are in: the kernel makes none by itself.
fn carry(archive: &mut Archive, carried: &[CarriedFile]) -> io::Result<()> {
    fn name(path: &Path) -> String {
        path.to_string_lossy().trim_start_matches('/').to_owned()
    }
    let folders: BTreeSet<&Path> = carried.iter().flat_map(|file| file.path.ancestors().skip(1)).collect();
    for folder in folders.into_iter().map(name).filter(|name| !name.is_empty()) {
        archive.add(&folder, DIRECTORY, b"")?;
    }
    carried.iter().try_for_each(|file| {
        archive.add(&name(&file.path), if file.executable { PROGRAM } else { PLAIN }, &file.contents)
    })
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let length = u32::try_from(contents.len()).map_err(io::Error::other)?;
        let mut writer =
            Builder::new(name).ino(self.entries).mode(mode).nlink(1).write(&mut self.bytes, length);
        io::Write::write_all(&mut writer, contents)?;
        writer.finish()?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        trailer(&mut self.bytes)?;
        Ok(std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;

    use cpio::newc::Reader;

    use super::*;

    fn kernel(directory: &Path) -> GuestKernel {
        fs::create_dir_all(directory.join("k")).unwrap();
        fs::write(directory.join("modules.dep"), "k/b.ko: k/a-x.ko\nk/a-x.ko:\n").unwrap();
        fs::write(directory.join("k/b.ko"), "B").unwrap();
        fs::write(directory.join("k/a-x.ko"), "A").unwrap();
        GuestKernel { image: "vmlinuz".into(), release: "1".into(), modules: directory.to_owned() }
    }

    #[test]
    fn the_archive_holds_init_and_modules_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let carried = CarriedFile { path: "/usr/bin/x".into(), executable: true, contents: b"X".to_vec() };
        let archive = build(&kernel(directory.path()), b"agent", &["b"], &[carried]).unwrap();
        let mut rest = archive.as_slice();
        let mut found = Vec::new();
        loop {
            let mut reader = Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut contents = String::new();
            reader.read_to_string(&mut contents).unwrap();
            rest = reader.finish().unwrap();
            found.push((name, mode, contents));
        }
        let entry = |name: &str, mode, contents: &str| (name.to_owned(), mode, contents.to_owned());
        assert_eq!(
            found,
            [
                entry("init", PROGRAM, "agent"),
                entry("modules.list", PLAIN, "/modules/a-x.ko\n/modules/b.ko\n"),
                entry("modules", DIRECTORY, ""),
                entry("modules/a-x.ko", PLAIN, "A"),
                entry("modules/b.ko", PLAIN, "B"),
                entry("usr", DIRECTORY, ""),
                entry("usr/bin", DIRECTORY, ""),
                entry("usr/bin/x", PROGRAM, "X"),
            ]
        );
    }

    #[test]
    fn a_module_that_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path());
        fs::remove_file(directory.path().join("k/a-x.ko")).unwrap();
        assert!(build(&kernel, b"agent", &["b"], &[]).unwrap_err().to_string().contains("a-x.ko"));
    }
}
