//! The guest's whole user space: the agent as init, its modules, and the order to load them in.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use cpio::newc::{Builder, trailer};
use virtbench_agent::MODULE_LIST;

use crate::carried_files::CarriedFile;
use crate::kernel::GuestKernel;
use crate::modules::{ModuleError, ModuleIndex};
use crate::unpack::unpack;

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
    use super::*;
    use cpio::newc::Reader;
    use std::io::Read;
    use std::path::Path;

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
