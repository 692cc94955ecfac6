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

/// Puts a file in place whole or not at all, so that two runs at once do no harm. `fill` writes it.
pub(crate) fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    fill(file.as_file_mut())?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_cannot_be_filled_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        let half = |file: &mut dyn Write| file.write_all(b"half").and(Err(io::Error::other("no more")));
        assert!(write_atomically(&path, half).is_err());
        assert_eq!(fs::read_dir(directory.path().join("a")).unwrap().count(), 0);
        write_atomically(&path, |file| file.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
