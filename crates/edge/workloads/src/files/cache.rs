//! What lies between a load and the device: the page cache, brought to a known state.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use virtbench_workload::files::CacheControl;

/// How much of the page cache may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All of it: nobody else uses this machine (a guest of ours).
    Machine,
    /// Only pages of our own files.
    OwnFiles,
}

impl Reach {
    /// What to say of it beside the figures.
    #[must_use]
    pub fn note(self, cache: CacheControl) -> &'static str {
        match (cache, self) {
            (CacheControl::Keep, _) => {
                "the page cache is left as it is: what fits into memory is measured there"
            }
            (CacheControl::Direct, _) => "the page cache is bypassed (O_DIRECT)",
            (CacheControl::Drop, Self::Machine) => {
                "before each phase everything is synced and the page cache dropped, with names and attributes"
            }
            (CacheControl::Drop, Self::OwnFiles) => {
                "before each phase the files are synced and their pages dropped; names and attributes stay cached"
            }
        }
    }
}

/// Brings all files under `folder` to the disk and, if asked, out of the cache.
pub(crate) fn settle(folder: &Path, cache: CacheControl, reach: Reach) -> io::Result<()> {
    if cache == CacheControl::Keep {
        return Ok(());
    }
    if reach == Reach::Machine {
        rustix::fs::sync();
        return fs::write("/proc/sys/vm/drop_caches", "3");
    }
    // Pages that are dirty cannot be dropped.
    rustix::fs::syncfs(File::open(folder)?)?;
    drop_pages(folder)
}

/// Drops the pages of every file under `folder`, without recursion.
fn drop_pages(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if let Ok(file) = File::open(entry.path()) {
                forget(&file)?;
            }
        }
    }
    Ok(())
}

/// Drops the clean pages of one file.
pub(crate) fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}
