//! Writing a test file before it is read, so that no read meets a hole or what was never written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::TargetError;
#[cfg(unix)]
use super::linux::partial::Partial;
#[cfg(windows)]
use super::windows::partial::Partial;
use crate::buffers::Buffers;

/// Bytes written at once.
const CHUNK: u64 = 4 << 20;

/// Makes `path` a file of `size_bytes` unique, incompressible bytes; returns what a reader of the figures should know.
///
/// It is written under another name and renamed when whole, so that a run that is killed never leaves a half-written file under the name that
/// a later run would trust. The half-written one is overwritten by that later run.
pub(super) fn make_file(
    path: &Path,
    size_bytes: u64,
    on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Vec<String>, TargetError> {
    let name = partial_name(path);
    let mut partial = Partial::open(&name, path)?;
    let made = check_room(path, size_bytes).and_then(|()| fill(&mut partial, path, size_bytes, on_progress));
    let mut notes = match made {
        Ok(note) => Vec::from_iter(note),
        Err(error) => {
            drop(partial);
            let _ = fs::remove_file(&name);
            return Err(error);
        }
    };
    if let Err(error) = partial.mark(&name) {
        notes.push(format!(
            "the file system cannot mark the file as virtbench's own ({error}): a later run needs --allow-overwrite"
        ));
    }
    partial.rename(&name, path).inspect_err(|_| drop(fs::remove_file(&name)))?;
    Ok(notes)
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".virtbench-partial");
    path.with_file_name(name)
}

fn check_room(path: &Path, wanted_bytes: u64) -> Result<(), TargetError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let free_bytes =
        Partial::free_bytes(folder).map_err(TargetError::io("look up the free room for", path))?;
    if free_bytes < wanted_bytes {
        return Err(TargetError::Full { path: path.to_owned(), wanted_bytes, free_bytes });
    }
    Ok(())
}

fn fill(
    partial: &mut Partial,
    path: &Path,
    size_bytes: u64,
    mut on_progress: impl FnMut(u64, u64) -> bool,
) -> Result<Option<String>, TargetError> {
    let failed = |source: io::Error| match Partial::is_of_room(&source) {
        true => TargetError::Full { path: path.to_owned(), wanted_bytes: size_bytes, free_bytes: 0 },
        false => TargetError::Io { action: "write", path: path.to_owned(), source },
    };
    if let Some(note) = partial.begin(size_bytes).map_err(failed)? {
        on_progress(size_bytes, size_bytes);
        return Ok(Some(note));
    }
    #[allow(clippy::cast_possible_truncation)]
    let mut buffers =
        Buffers::new(1, CHUNK as usize, size_bytes ^ u64::from(std::process::id())).map_err(failed)?;
    let mut offset = 0;
    while offset < size_bytes {
        if !on_progress(offset, size_bytes) {
            return Err(TargetError::Interrupted(path.to_owned()));
        }
        #[allow(clippy::cast_possible_truncation)]
        let len = CHUNK.min(size_bytes - offset) as usize;
        buffers.renew(0, len);
        partial.write(buffers.slot(0), len, offset).map_err(failed)?;
        offset += len as u64;
    }
    partial.end(size_bytes).map_err(failed)?;
    on_progress(size_bytes, size_bytes);
    Ok(None)
}
