//! File systems on a guest's disk, made by the host.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use virtbench_mark::{FileMarkError, Mark, RunId, make_marked_file};
use virtbench_units::format_bytes;

/// How long making one may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How much of what a program says is kept.
const MAX_WORDS: u64 = 4096;
/// Written at once where a file has holes.
const WRITE_BYTES: usize = 4 << 20;

/// A file system that guests can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

/// Why there is no file system.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum FilesystemError {
    /// No such file system.
    #[error("there is no file system {0:?}: choose ext4 or xfs")]
    Unknown(String),
    /// Its program is not installed.
    #[error("{program} cannot be started: {source}; apt install {package}")]
    Program {
        program: &'static str,
        /// Debian's package of it.
        package: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The disk is too small for it.
    #[error("{path} has {}, and {name} needs {}: raise --size", format_bytes(*size_bytes),
        format_bytes(*least_bytes), path = path.display())]
    TooSmall {
        /// The disk.
        path: PathBuf,
        /// The file system.
        name: &'static str,
        /// The disk's size, in bytes.
        size_bytes: u64,
        /// The least it needs, in bytes.
        least_bytes: u64,
    },
    /// There is a file of its name that is not virtbench's to overwrite.
    #[error(transparent)]
    Mark(#[from] FileMarkError),
    /// Its program refused, or did not come to an end.
    #[error("{program} on {path}: {said}", path = path.display())]
    Refused {
        program: &'static str,
        /// The disk.
        path: PathBuf,
        /// What it said.
        said: String,
    },
    /// The disk cannot be written.
    #[error("cannot make {path} a disk: {source}", path = path.display())]
    Disk {
        /// The disk.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Filesystem {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// Its name, as the kernel and the command line have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The file system of this name.
    ///
    /// # Errors
    /// There is none; the error lists those there are.
    pub fn find(name: &str) -> Result<Self, FilesystemError> {
        let found = Self::ALL.into_iter().find(|filesystem| filesystem.name() == name);
        found.ok_or_else(|| FilesystemError::Unknown(name.to_owned()))
    }

    /// The modules that a guest needs for it. That both need the checksum is no dependency of theirs
    /// in `modules.dep`: they ask for it by the name of the algorithm.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["crc32c_generic", "ext4"],
            Self::Xfs => &["crc32c_generic", "xfs"],
        }
    }

    fn program(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            // Inode tables and journal are written now, not by the kernel while something is measured.
            Self::Ext4 => (
                "mkfs.ext4",
                "e2fsprogs",
                &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            ),
            Self::Xfs => ("mkfs.xfs", "xfsprogs", &["-q", "-f", "-K"]),
        }
    }

    /// The smallest disk for it, in bytes: below it mkfs.xfs refuses, and ext4 has no journal.
    #[must_use]
    pub fn least_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 16 << 20,
            Self::Xfs => 300 << 20,
        }
    }
}

/// Makes an empty file system on `path`, a file that is made with a mark and given so many bytes. A file of virtbench's that is left over
/// is replaced. After a failure nothing is there.
///
/// # Errors
/// The disk is too small or cannot be written, or the file system's program is missing or refuses.
pub fn make_filesystem(path: &Path, size_bytes: u64, filesystem: Filesystem) -> Result<(), FilesystemError> {
    make_filesystem_with(path, size_bytes, filesystem, None)
}

/// The same with a copy of everything in the folder `from`, with its owners and modes (ext4 only).
///
/// # Errors
/// As for [`make_filesystem`], or a file system that cannot be filled without being mounted.
pub fn make_filesystem_with(
    path: &Path,
    size_bytes: u64,
    filesystem: Filesystem,
    from: Option<&Path>,
) -> Result<(), FilesystemError> {
    let least_bytes = filesystem.least_bytes();
    if size_bytes < least_bytes {
        let (path, name) = (path.to_owned(), filesystem.name());
        return Err(FilesystemError::TooSmall { path, name, size_bytes, least_bytes });
    }
    let file = make_marked_file(path, &Mark::new(RunId::new_random(), "filesystem"))?;
    let made = fill(&file, path, size_bytes, filesystem, from);
    if made.is_err() {
        let _ = fs::remove_file(path);
    }
    made
}

fn fill(
    file: &File,
    path: &Path,
    size_bytes: u64,
    filesystem: Filesystem,
    from: Option<&Path>,
) -> Result<(), FilesystemError> {
    let disk = |source| FilesystemError::Disk { path: path.to_owned(), source };
    file.set_len(size_bytes).map_err(disk)?;
    let (program, package, arguments) = filesystem.program();
    if from.is_some() && filesystem != Filesystem::Ext4 {
        let said = "only ext4 can be filled when it is made: leave out --filesystem".to_owned();
        return Err(FilesystemError::Refused { program, path: path.to_owned(), said });
    }
    let filled: Vec<&OsStr> = from.map_or_else(Vec::new, |folder| vec![OsStr::new("-d"), folder.as_os_str()]);
    // Where Debian keeps them is not on every user's path.
    let paths = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut child = Command::new(program)
        .env("PATH", paths)
        .args(arguments)
        .args(filled)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| FilesystemError::Program { program, package, source })?;
    let begun = Instant::now();
    let refused = |said: String| FilesystemError::Refused { program, path: path.to_owned(), said };
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < LIMIT => thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(refused(format!("it was not done after {} s", LIMIT.as_secs())));
            }
            Err(error) => return Err(refused(error.to_string())),
        }
    };
    if !status.success() {
        let mut said = String::new();
        if let Some(stderr) = child.stderr.take() {
            let _ = stderr.take(MAX_WORDS).read_to_string(&mut said);
        }
        return Err(refused(format!("{status}: {}", said.trim())));
    }
    file.sync_all().map_err(disk)
}

/// Writes what has no blocks yet. Otherwise each first write to the file system in it would have the host's find a block for
/// it, and each flush wait for that one's journal.
///
/// # Errors
/// The file cannot be read or written, or its disk is full.
pub fn fill_holes(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let mut buffer = vec![0; WRITE_BYTES];
    let mut at = 0;
    while at < length {
        let count = usize::try_from(length - at).unwrap_or(WRITE_BYTES).min(WRITE_BYTES);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut buffer[..count])?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&buffer[..count])?;
        at += count as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_what_is_unknown_is_told_what_there_is() {
        assert_eq!(Filesystem::find("xfs").unwrap(), Filesystem::Xfs);
        assert!(Filesystem::find("btrfs").unwrap_err().to_string().contains("ext4"));
    }

    #[test]
    fn a_disk_too_small_is_refused_before_it_is_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("disk");
        let error = make_filesystem(&path, 64 << 20, Filesystem::Xfs).unwrap_err();
        assert!(error.to_string().contains("300 MiB"), "{error}");
        assert!(!path.exists());
    }
}
