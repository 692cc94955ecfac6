//! What lies between a load and the device: the page cache, brought to a known state.

use std::io;
use std::path::Path;

use virtbench_workload::files::CacheControl;

use crate::files::calls;

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
    pub fn note(self, cache: CacheControl) -> String {
        match (cache, self) {
            (CacheControl::Keep, _) => {
                "the page cache is left as it is: what fits into memory is measured there"
            }
            (CacheControl::Direct, _) => return format!("the page cache is bypassed ({})", calls::DIRECT),
            (CacheControl::Drop, Self::Machine) => {
                "before each phase everything is synced and the page cache dropped, with names and attributes"
            }
            (CacheControl::Drop, Self::OwnFiles) => {
                "before each phase the files are synced and their pages dropped; names and attributes stay cached"
            }
        }
        .to_owned()
    }
}

/// Brings all files under `folder` to the disk and, if asked, out of the cache.
pub(crate) fn settle(folder: &Path, cache: CacheControl, reach: Reach) -> io::Result<()> {
    if cache == CacheControl::Keep {
        return Ok(());
    }
    match reach {
        Reach::Machine => calls::empty_cache(),
        Reach::OwnFiles => calls::settle_files(folder),
    }
}
