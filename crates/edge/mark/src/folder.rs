//! Folders of ours: a marker file in each.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::mark::Mark;
use crate::removal::{Marked, Removal, remove_left_over};
use crate::system::is_on_this_machine;

/// The name of the marker file in a folder.
pub const MARK_FILE: &str = ".virtbench-mark";

/// No mark is longer, in bytes.
const LONGEST: u64 = 1024;

/// A folder that cannot be marked or removed.
#[derive(Debug, Error)]
pub enum FolderMarkError {
    /// It has a marker file already.
    #[error("{} is marked already", .0.display())]
    Marked(PathBuf),
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// Marks a folder.
///
/// # Errors
/// It is marked already, or cannot be written into.
pub fn mark_folder(folder: &Path, mark: &Mark) -> Result<(), FolderMarkError> {
    let file = File::options().write(true).create_new(true).open(folder.join(MARK_FILE));
    let written = file.and_then(|mut file| {
        writeln!(file, "{mark}")?;
        file.sync_all()
    });
    written.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FolderMarkError::Marked(folder.to_owned()),
        _ => FolderMarkError::Io { path: folder.to_owned(), source },
    })
}

/// The mark of a folder; nothing where it has none that virtbench wrote.
///
/// # Errors
/// The marker file is there and cannot be read.
pub fn read_folder_mark(folder: &Path) -> Result<Option<Mark>, FolderMarkError> {
    let mut folder = folder.to_owned();
    Ok(folder.written()?.as_deref().and_then(Mark::parse))
}

/// Removes a folder with all that is in it, if virtbench made it and its maker has ended.
///
/// # Errors
/// It cannot be read or removed.
pub fn remove_marked_folder(folder: &Path) -> Result<Removal, FolderMarkError> {
    remove_left_over(&mut folder.to_owned())
}

impl Marked for PathBuf {
    type Error = FolderMarkError;

    fn written(&mut self) -> Result<Option<String>, FolderMarkError> {
        // A link to a folder of ours is not a folder of ours.
        let is_folder = fs::symlink_metadata(&*self).is_ok_and(|facts| facts.is_dir());
        let read = || {
            let mut text = String::new();
            File::open(self.join(MARK_FILE))?.take(LONGEST).read_to_string(&mut text)?;
            Ok(text)
        };
        match read() {
            _ if !is_folder => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(error) => match io::Error::kind(&error) {
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData => Ok(None),
                _ => Err(FolderMarkError::Io { path: self.clone(), source: error }),
            },
        }
    }

    fn is_here(&self) -> bool {
        is_on_this_machine(self)
    }

    /// The marker file goes last, so that what a kill leaves is still known to be ours.
    fn remove(&mut self) -> Result<(), FolderMarkError> {
        let failed = |source| FolderMarkError::Io { path: self.clone(), source };
        for entry in fs::read_dir(&*self).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == MARK_FILE {
                continue;
            }
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let removed =
                if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
            removed.map_err(failed)?;
        }
        fs::remove_dir_all(&*self).map_err(failed)
    }
}

/// A shell function `mark` that prints the mark of the shell itself for a login; the run's id is in `$run`. It needs `sha256sum`, and
/// keeps to what BusyBox has too. A program that the shell hands itself over to with `exec` is the same maker. There are neither single
/// quotes nor exclamation marks in it.
pub const SHELL_MARK: &str = "\
mark() { \
of=$({ cat /etc/machine-id /proc/sys/kernel/hostname 2>/dev/null; readlink -n /proc/self/ns/pid; } | sha256sum | cut -c 1-10); \
boot=$(sha256sum < /proc/sys/kernel/random/boot_id | cut -c 1-10); \
echo \"virtbench-mark-1 run=$run for=login machine=$of boot=$boot process=$$ began=$(cut -d \" \" -f 22 /proc/$$/stat)\"; }";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::mark::{Mark, Owner, RunId};

    fn left_over() -> Mark {
        let mut mark = Mark::new(RunId::new_random(), "work");
        mark.maker.began += 1;
        mark
    }

    #[test]
    fn a_stranger_with_the_same_name_stays() {
        let parent = tempfile::tempdir().unwrap();
        let [ours, foreign] =
            ["ours", "foreign"].map(|name| parent.path().join(name).join(".virtbench-agent"));
        for folder in [&ours, &foreign] {
            fs::create_dir_all(folder.join("deep")).unwrap();
            fs::write(folder.join("deep/notes.txt"), "x").unwrap();
        }
        mark_folder(&ours, &left_over()).unwrap();
        assert!(matches!(remove_marked_folder(&ours), Ok(Removal::Removed(_))));
        assert!(matches!(remove_marked_folder(&foreign), Ok(Removal::Foreign)));
        assert!(!ours.exists() && foreign.join("deep/notes.txt").exists());
    }

    #[test]
    fn a_folder_of_one_that_lives_stays_and_is_not_marked_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mark = Mark::new(RunId::new_random(), "work");
        mark_folder(folder.path(), &mark).unwrap();
        assert_eq!(read_folder_mark(folder.path()).unwrap(), Some(mark.clone()));
        assert!(matches!(remove_marked_folder(folder.path()), Ok(Removal::Needed(needed)) if needed == mark));
        assert!(matches!(mark_folder(folder.path(), &mark), Err(FolderMarkError::Marked(_))));
    }

    #[test]
    fn what_was_made_before_this_start_is_left_over_on_this_machine() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let ours = folder.path().join("ours");
        fs::create_dir(&ours).unwrap();
        let mut mark = Mark::new(RunId::new_random(), "work");
        mark.maker.boot = "0".repeat(mark.maker.boot.len());
        mark_folder(&ours, &mark).unwrap();
        assert!(matches!(remove_marked_folder(&ours), Ok(Removal::Removed(_))));
    }

    #[test]
    fn a_link_and_a_damaged_marker_are_foreign() {
        let parent = tempfile::tempdir().unwrap();
        let (ours, link, damaged) =
            (parent.path().join("ours"), parent.path().join("link"), parent.path().join("damaged"));
        fs::create_dir(&ours).unwrap();
        mark_folder(&ours, &left_over()).unwrap();
        symlink(&ours, &link).unwrap();
        fs::create_dir(&damaged).unwrap();
        fs::write(damaged.join(MARK_FILE), [0xff; 40]).unwrap();
        for folder in [&link, &damaged, &parent.path().join("none")] {
            assert!(matches!(remove_marked_folder(folder), Ok(Removal::Foreign)), "{}", folder.display());
        }
        assert!(ours.join(MARK_FILE).exists() && damaged.exists());
    }

    #[test]
    fn a_shell_and_what_it_becomes_are_one_maker() {
        assert!(!SHELL_MARK.contains(['\'', '!', '\n']));
        let run = RunId::new_random();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        let script = format!("run={run}; {SHELL_MARK}; mark > {}; exec sleep 60", path.display());
        let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        let written = || std::fs::read_to_string(&path).ok().as_deref().and_then(Mark::parse);
        let mark = loop {
            match written() {
                Some(mark) => break mark,
                None if shell.try_wait().unwrap().is_some() => panic!("no mark: {:?}", std::fs::read(&path)),
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert_eq!((mark.run.clone(), mark.purpose(), mark.owner()), (run, "login", Owner::Lives));
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(mark.owner(), Owner::Gone);
    }
}
