//! File systems on a guest's disk, made by the host.
//!
//! And a new file system for this host's own runs, so that they find what a VM finds on its new disk, and not a file system that
//! has been in use for years.
//!
//! ```text
//! folder ── ext4 or XFS ── loop device ── file beside the folder
//! ```
//!
//! It is mounted where only this thread, those that it starts later and their processes see it ([`see_alone`]); with the last
//! of them the kernel takes it away, also after a kill.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use thiserror::Error;
use virtbench_agent::enclosure::{LoopCache, LoopDevice, LoopError};
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

/// Why there is none.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum OwnFilesystemError {
    /// It cannot be made.
    #[error(transparent)]
    Make(#[from] FilesystemError),
    /// There is no loop device.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// It cannot be mounted.
    #[error("{action}: {source}")]
    Mount {
        /// What failed.
        action: String,
        source: io::Error,
    },
}

/// Lets this thread and those that it starts from now on see mounts of their own. Once is enough.
///
/// # Errors
/// Root is needed.
pub fn see_alone() -> Result<(), OwnFilesystemError> {
    let failed = |action: &str, source: rustix::io::Errno| OwnFilesystemError::Mount {
        action: action.to_owned(),
        source: source.into(),
    };
    // SAFETY: a mount namespace of one's own closes no descriptor and shares no memory anew.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(|error| failed("mounts of one's own cannot be had (root is needed)", error))?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| failed("mounts cannot be kept from others", error))
}

/// A mounted file system; unmounted when this goes.
#[derive(Debug)]
pub struct OwnFilesystem {
    folder: PathBuf,
    image: PathBuf,
}

impl OwnFilesystem {
    /// Makes and mounts one of so many bytes on `folder`, which is made, with a copy of everything in `from` (ext4 only). Its
    /// file is `folder` with `.img` behind its name, whole from the beginning, and loses that name once it is mounted, so that a
    /// kill leaves no more than an empty folder. Call [`see_alone`] before.
    ///
    /// # Errors
    /// Root is needed, a loop device, and the file system's program; nothing is left behind.
    pub fn mount(
        folder: &Path,
        size_bytes: u64,
        filesystem: Filesystem,
        from: Option<&Path>,
    ) -> Result<Self, OwnFilesystemError> {
        let mut image = folder.as_os_str().to_owned();
        image.push(".img");
        let image = PathBuf::from(image);
        let failed = |action: &str, path: &Path, source: io::Error| OwnFilesystemError::Mount {
            action: format!("{action} {}", path.display()),
            source,
        };
        make_filesystem_with(&image, size_bytes, filesystem, from)?;
        let own = Self { folder: folder.to_owned(), image };
        fill_holes(&own.image).map_err(|error| failed("cannot write", &own.image, error))?;
        fs::create_dir_all(folder).map_err(|error| failed("cannot make", folder, error))?;
        let device = LoopDevice::attach(&own.image, LoopCache::WriteBack)?;
        mount(device.path(), folder, filesystem.name(), MountFlags::NODEV, None)
            .map_err(|error| failed("cannot mount", folder, error.into()))?;
        fs::remove_file(&own.image).map_err(|error| failed("cannot remove", &own.image, error))?;
        Ok(own)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for OwnFilesystem {
    fn drop(&mut self) {
        // Not even if something still uses it; the kernel takes it away with that.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
        let _ = fs::remove_dir(&self.folder);
        // Where it was not mounted.
        let _ = fs::remove_file(&self.image);
    }
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

    /// Whether anybody's mounts, those of the process's first thread, have a folder.
    fn is_seen(folder: &Path) -> bool {
        let mounts = fs::read_to_string(format!("/proc/{}/mounts", std::process::id())).unwrap();
        mounts.contains(folder.to_str().unwrap())
    }

    #[test]
    fn it_is_seen_by_its_own_thread_alone_and_leaves_nothing() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let from = parent.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("hello"), "there").unwrap();
        let folder = parent.path().join("own");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                see_alone().unwrap_or_else(|error| panic!("{error}"));
                let own = OwnFilesystem::mount(&folder, 64 << 20, Filesystem::Ext4, Some(&from))
                    .unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(fs::read_to_string(own.folder().join("hello")).unwrap(), "there");
                fs::write(own.folder().join("new"), "file").unwrap();
                let seen = std::process::Command::new("cat").arg(own.folder().join("new")).output().unwrap();
                assert_eq!(seen.stdout, b"file", "children see it");
                assert!(!is_seen(own.folder()));
                assert!(!parent.path().join("own.img").exists(), "a kill would leave nothing");
                drop(own);
                assert!(!folder.exists());
            });
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "only what it began with");
    }

    #[test]
    fn what_cannot_be_made_leaves_nothing() {
        let parent = tempfile::tempdir_in("/var/tmp").unwrap();
        let folder = parent.path().join("own");
        let error = OwnFilesystem::mount(&folder, 4096, Filesystem::Ext4, None).unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
