//! The page cache, emptied before a run so that nothing depends on what ran before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fdatasync, sync};

use crate::runner::RunError;

/// Whether the system can do it for a workload with files: it can.
#[allow(clippy::unnecessary_wraps, reason = "other systems cannot")]
pub(crate) fn check() -> Result<(), RunError> {
    Ok(())
}

/// Empties the page cache: in a guest the whole of it, elsewhere what it holds of `files` alone, as
/// others' files are none of our business. Returns what a reader should know.
pub(crate) fn drop_caches(files: &[PathBuf]) -> String {
    // As process 1 this program is alone in a guest that was made for it.
    if std::process::id() == 1 {
        sync();
        return match fs::write("/proc/sys/vm/drop_caches", "3") {
            Ok(()) => "the page cache was emptied before every run".to_owned(),
            Err(error) => format!("the page cache could not be emptied: {error}"),
        };
    }
    match files.iter().try_for_each(|file| forget(file)) {
        Ok(()) if files.is_empty() => {
            "drop-caches: this workload has no files, nothing was dropped".to_owned()
        }
        Ok(()) => "before every run the page cache was asked to forget the workload's own files".to_owned(),
        Err(error) => format!("the page cache could not be made to forget the workload's own files: {error}"),
    }
}

/// Has the page cache forget a file, or all files directly in a folder.
fn forget(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return fs::read_dir(path)?.try_for_each(|entry| {
            let path = entry?.path();
            if path.is_file() { forget(&path) } else { Ok(()) }
        });
    }
    let file = File::open(path)?;
    // Only clean pages can be forgotten.
    fdatasync(&file)?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_forgotten_and_that_is_said() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        assert!(drop_caches(&[folder.path().to_owned(), file]).contains("own files"));
        assert!(drop_caches(&[]).contains("nothing was dropped"));
        assert!(drop_caches(&[folder.path().join("gone")]).contains("could not"));
    }
}
