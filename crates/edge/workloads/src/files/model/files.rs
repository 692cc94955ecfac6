//! A set of files on the disk, and which of them exist.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_engine::Buffers;
use virtbench_units::Random;
use virtbench_workload::files::{Draw, FileSet};

use crate::files::board::{FilesError, is_full};
use crate::files::calls;

/// Shape of the distribution of folder widths, Filebench's default.
const WIDTH_SHAPE: f64 = 1.5;
/// Bytes written at once while files are made.
const CHUNK: usize = 1 << 20;
/// How often a file that nobody has open is looked for by chance, before all are gone through.
const TRIES: usize = 16;

/// The files of one set.
#[derive(Debug)]
pub(crate) struct FileTree {
    folders: Vec<PathBuf>,
    /// Folder of each file.
    folder_of: Vec<u32>,
    /// Size each file was drawn to have, in bytes.
    sizes: Vec<u64>,
    state: Mutex<State>,
}

/// Every file stands in one of two lists, or in none while it is being made or deleted.
#[derive(Debug)]
struct State {
    existing: Vec<u32>,
    absent: Vec<u32>,
    /// Where an existing file stands in its list.
    place: Vec<u32>,
    /// How many use it just now.
    users: Vec<u16>,
}

impl State {
    fn exists_now(&mut self, index: u32) {
        self.place[index as usize] = u32::try_from(self.existing.len()).unwrap_or(u32::MAX);
        self.existing.push(index);
    }

    fn remove_existing(&mut self, index: u32) {
        let place = self.place[index as usize] as usize;
        self.existing.swap_remove(place);
        if let Some(moved) = self.existing.get(place) {
            self.place[*moved as usize] = u32::try_from(place).unwrap_or(u32::MAX);
        }
    }
}

/// The folders of a set and how many files each takes. Widths are drawn until all files have a place;
/// where there are more folders than fit into one, they lie in folders of the mean width themselves, so
/// that the tree is as deep as Filebench's on average.
fn folders(set: &FileSet, root: &Path, random: &mut Random) -> Vec<(PathBuf, u32)> {
    let width = Draw::Gamma { mean: f64::from(set.dir_width.max(1)), shape: WIDTH_SHAPE }.drawer();
    let mut left = set.entries;
    let mut widths = Vec::new();
    while left > 0 {
        let take = u32::try_from(width.next(random)).unwrap_or(u32::MAX).clamp(1, left);
        widths.push(take);
        left -= take;
    }
    let base = (set.dir_width.max(2)) as usize;
    let mut depth = 1;
    let mut reach = base;
    while reach < widths.len() {
        reach = reach.saturating_mul(base);
        depth += 1;
    }
    let path = |mut number: usize| {
        let mut parts = Vec::new();
        for _ in 0..depth {
            parts.push(format!("{:08}", number % base + 1));
            number /= base;
        }
        parts.iter().rev().fold(root.to_owned(), |path, part| path.join(part))
    };
    widths.iter().enumerate().map(|(number, take)| (path(number), *take)).collect()
}

impl FileTree {
    /// Draws the set, makes its folders and the share of its files that exist at the start.
    pub(crate) fn make(
        set: &FileSet,
        folder: &Path,
        seed: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, FilesError> {
        let mut random = Random::new(seed);
        let root = folder.join(&set.name);
        let sizes_drawn = set.size.drawer();
        let mut tree = Self {
            folders: Vec::new(),
            folder_of: Vec::with_capacity(set.entries as usize),
            sizes: (0..set.entries).map(|_| sizes_drawn.next(&mut random)).collect(),
            state: Mutex::new(State {
                existing: Vec::new(),
                absent: Vec::new(),
                place: vec![0; set.entries as usize],
                users: vec![0; set.entries as usize],
            }),
        };
        for (number, (path, take)) in (0u32..).zip(folders(set, &root, &mut random)) {
            if is_over() {
                return Err(FilesError::Interrupted);
            }
            fs::create_dir_all(&path).map_err(FilesError::io("make", &path))?;
            tree.folders.push(path);
            tree.folder_of.extend(std::iter::repeat_n(number, take as usize));
        }
        let mut order: Vec<u32> = (0..set.entries).collect();
        shuffle(&mut order, &mut random);
        let existing = (u64::from(set.entries) * u64::from(set.prealloc_percent)).div_ceil(100);
        let mut buffers = Buffers::new(1, CHUNK, seed)
            .map_err(|source| FilesError::Resource { what: "memory for buffers", source })?;
        for (index, count) in order.into_iter().zip(1u64..) {
            if is_over() {
                return Err(FilesError::Interrupted);
            }
            if count <= existing {
                tree.fill(index, &mut buffers)?;
                tree.state().exists_now(index);
            } else {
                tree.state().absent.push(index);
            }
        }
        Ok(tree)
    }

    fn fill(&self, index: u32, buffers: &mut Buffers) -> Result<(), FilesError> {
        let path = self.path(index);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&path)?;
            let mut left = self.size(index);
            while left > 0 {
                #[allow(clippy::cast_possible_truncation)]
                let len = left.min(CHUNK as u64) as usize;
                buffers.renew(0, len);
                file.write_all(&buffers.slot(0)[..len])?;
                left -= len as u64;
            }
            Ok(())
        };
        let mut write = write;
        write().map_err(|source| {
            if is_full(&source) {
                return FilesError::Full { path, wanted_bytes: self.sizes.iter().sum(), free_bytes: 0 };
            }
            FilesError::io("write", path)(source)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a file.
    pub(crate) fn path(&self, index: u32) -> PathBuf {
        self.folders[self.folder_of[index as usize] as usize].join(format!("{:08}", index + 1))
    }

    /// The size a file was drawn to have, in bytes.
    pub(crate) fn size(&self, index: u32) -> u64 {
        self.sizes[index as usize]
    }

    /// A folder, any.
    pub(crate) fn any_folder(&self, random: &mut Random) -> &Path {
        &self.folders[any(self.folders.len(), random)]
    }

    /// A file that exists, any; it is not deleted until it is released.
    pub(crate) fn hold_existing(&self, random: &mut Random) -> Option<u32> {
        let mut state = self.state();
        if state.existing.is_empty() {
            return None;
        }
        let index = state.existing[any(state.existing.len(), random)];
        let users = &mut state.users[index as usize];
        *users = users.saturating_add(1);
        Some(index)
    }

    /// A held file is no longer used.
    pub(crate) fn release(&self, index: u32) {
        let users = &mut self.state().users[index as usize];
        *users = users.saturating_sub(1);
    }

    /// A file that does not exist, any, for the caller to create.
    pub(crate) fn take_absent(&self, random: &mut Random) -> Option<u32> {
        let mut state = self.state();
        if state.absent.is_empty() {
            return None;
        }
        let place = any(state.absent.len(), random);
        Some(state.absent.swap_remove(place))
    }

    /// It was created, and the caller uses it.
    pub(crate) fn created(&self, index: u32) {
        let mut state = self.state();
        state.users[index as usize] = 1;
        state.exists_now(index);
    }

    /// It was not created, or has been deleted.
    pub(crate) fn absent_again(&self, index: u32) {
        self.state().absent.push(index);
    }

    /// A file that exists and nobody uses, any, for the caller to delete.
    pub(crate) fn take_idle(&self, random: &mut Random) -> Option<u32> {
        let mut state = self.state();
        let count = state.existing.len();
        if count == 0 {
            return None;
        }
        let idle = |state: &State, index: u32| state.users[index as usize] == 0;
        let by_chance =
            (0..TRIES).map(|_| state.existing[any(count, random)]).find(|index| idle(&state, *index));
        let index =
            by_chance.or_else(|| state.existing.iter().copied().find(|index| idle(&state, *index)))?;
        state.remove_existing(index);
        Some(index)
    }

    /// Opens a file for reading and writing.
    pub(crate) fn open(&self, index: u32, create: bool, dsync: bool) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create);
        if dsync {
            calls::write_through(&mut options);
        }
        options.open(self.path(index))
    }
}

/// A number below `count`.
#[allow(clippy::cast_possible_truncation)]
fn any(count: usize, random: &mut Random) -> usize {
    random.below(count as u64) as usize
}

/// Puts a list into random order (Fisher and Yates).
pub(crate) fn shuffle<T>(list: &mut [T], random: &mut Random) {
    for last in (1..list.len()).rev() {
        list.swap(last, any(last + 1, random));
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
