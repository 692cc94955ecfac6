//! Where virtbench keeps what is costly to get again.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `$VIRTBENCH_CACHE`, else `$XDG_CACHE_HOME/virtbench`, else `~/.cache/virtbench`.
#[must_use]
pub fn cache_directory() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("VIRTBENCH_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("virtbench")))
        .or_else(|| Some(set("HOME")?.join(".cache/virtbench")))
        .unwrap_or_else(|| PathBuf::from("/var/cache/virtbench"))
}

/// Puts a file in place whole or not at all, so that two runs at once do no harm.
pub(crate) fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.persist(path)?;
    Ok(())
}
