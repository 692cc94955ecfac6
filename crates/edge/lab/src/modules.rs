//! Which modules a guest needs, in the order in which they must be loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Endings of module files.
const ENDINGS: [&str; 4] = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"];

/// Why the modules cannot be had.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ModuleError {
    /// The kernel has no such driver.
    #[error(
        "the guest kernel has no module {name}: use Debian's full kernel (linux-image-amd64, not -cloud-), \
         which `make setup` fetches"
    )]
    Unknown { name: String },
    /// The index names no module.
    #[error("line {line} of modules.dep is no list of modules: run depmod again")]
    Damaged {
        /// Its number, from 1.
        line: usize,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A kernel's modules and what each depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleIndex {
    /// File by name.
    files: BTreeMap<String, String>,
    /// What each file needs.
    needs: BTreeMap<String, Vec<String>>,
    /// Names of what the kernel itself contains.
    builtin: BTreeSet<String>,
}

impl ModuleIndex {
    /// Reads the index of a modules directory.
    ///
    /// # Errors
    /// It cannot be read or is damaged.
    pub fn read(directory: &Path) -> Result<Self, ModuleError> {
        let text = |name| {
            let path = directory.join(name);
            fs::read_to_string(&path).map_err(|source| ModuleError::Unreadable { path, source })
        };
        // A kernel may well have nothing built in.
        Self::parse(&text("modules.dep")?, &text("modules.builtin").unwrap_or_default())
    }

    /// Reads the texts of `modules.dep` and `modules.builtin`.
    ///
    /// # Errors
    /// A line without its colon, or one that names no module.
    pub fn parse(dependencies: &str, builtin: &str) -> Result<Self, ModuleError> {
        let mut index = Self::default();
        for (number, line) in dependencies.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let damaged = || ModuleError::Damaged { line: number + 1 };
            let (file, needs) = line.split_once(':').ok_or_else(damaged)?;
            index.files.insert(module_name(file).ok_or_else(damaged)?, file.to_owned());
            index.needs.insert(file.to_owned(), needs.split_whitespace().map(str::to_owned).collect());
        }
        index.builtin = builtin.lines().filter_map(module_name).collect();
        Ok(index)
    }

    /// The files of these modules and of all they depend on, each after what it needs.
    ///
    /// # Errors
    /// The kernel has one of them neither as a module nor built in.
    pub fn load_order(&self, names: &[&str]) -> Result<Vec<String>, ModuleError> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            let name = name.replace('-', "_");
            match self.files.get(&name) {
                Some(file) => self.visit(file, &mut seen, &mut order)?,
                None if self.builtin.contains(&name) => {}
                None => return Err(ModuleError::Unknown { name }),
            }
        }
        Ok(order)
    }

    /// Depth first, without recursion: the index is a user's file.
    fn visit<'a>(
        &'a self,
        file: &'a str,
        seen: &mut BTreeSet<&'a str>,
        order: &mut Vec<String>,
    ) -> Result<(), ModuleError> {
        let mut stack = vec![(file, false)];
        while let Some((file, needs_done)) = stack.pop() {
            if needs_done {
                order.push(file.to_owned());
            } else if seen.insert(file) {
                stack.push((file, true));
                let needs =
                    self.needs.get(file).ok_or_else(|| ModuleError::Unknown { name: file.to_owned() })?;
                // What depmod names last is loaded first, and so must be pushed last.
                stack.extend(needs.iter().map(|need| (need.as_str(), false)));
            }
        }
        Ok(())
    }
}

/// The name of the module in a file: `kernel/drivers/virtio/virtio-pci.ko.xz` is `virtio_pci`.
fn module_name(file: &str) -> Option<String> {
    let base = file.trim().rsplit('/').next()?;
    let stem = ENDINGS.iter().find_map(|ending| base.strip_suffix(ending))?;
    (!stem.is_empty()).then(|| stem.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEP: &str = "k/virtio_blk.ko: k/virtio.ko k/virtio_ring.ko\nk/virtio.ko: k/virtio_ring.ko\n\
                       k/virtio_ring.ko:\nk/snd-hda.ko.xz:\n";

    fn order(names: &[&str]) -> Result<Vec<String>, ModuleError> {
        ModuleIndex::parse(DEP, "kernel/fs/ext4/ext4.ko\n").unwrap().load_order(names)
    }

    #[test]
    fn needs_come_first_and_once() {
        assert_eq!(
            order(&["virtio_blk", "virtio"]).unwrap(),
            ["k/virtio_ring.ko", "k/virtio.ko", "k/virtio_blk.ko"]
        );
    }

    #[test]
    fn dashes_and_packed_files_are_understood() {
        assert_eq!(order(&["snd_hda"]).unwrap(), ["k/snd-hda.ko.xz"]);
        assert_eq!(order(&["snd-hda"]).unwrap(), ["k/snd-hda.ko.xz"]);
    }

    #[test]
    fn what_is_built_in_needs_no_file() {
        assert!(order(&["ext4"]).unwrap().is_empty());
    }

    #[test]
    fn an_unknown_module_is_named() {
        assert!(order(&["mptsas"]).unwrap_err().to_string().contains("mptsas"));
        assert!(matches!(ModuleIndex::parse("nonsense", ""), Err(ModuleError::Damaged { line: 1 })));
    }

    proptest! {
        /// Whatever the (acyclic) graph, each module stands after all it needs, and only once.
        #[test]
        fn every_order_can_be_loaded(
            graph in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 1..40),
        ) {
            let needs = |number: usize| -> Vec<usize> {
                graph[number].iter().filter(|_| number > 0).map(|need| need.index(number)).collect()
            };
            let text: String = (0..graph.len()).map(|number| {
                let list: Vec<String> = needs(number).iter().map(|need| format!("m{need}.ko")).collect();
                format!("m{number}.ko: {}\n", list.join(" "))
            }).collect();
            let index = ModuleIndex::parse(&text, "").unwrap();
            let last = format!("m{}", graph.len() - 1);
            let order = index.load_order(&[&last, "m0"]).unwrap();
            for (place, file) in order.iter().enumerate() {
                let number: usize = file[1..file.len() - 3].parse().unwrap();
                for need in needs(number) {
                    let needed = format!("m{need}.ko");
                    prop_assert!(order[..place].contains(&needed));
                }
                prop_assert!(!order[..place].contains(file));
            }
        }

        #[test]
        fn no_text_panics_and_cycles_end(text in "([ab]\\.ko: ([ab]\\.ko ?){0,3}\n){0,4}", other in ".{0,80}") {
            if let Ok(index) = ModuleIndex::parse(&text, &other) {
                let _ = index.load_order(&["a", "b"]);
            }
            let _ = ModuleIndex::parse(&other, &text);
        }
    }
}
