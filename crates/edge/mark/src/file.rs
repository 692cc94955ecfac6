//! Files of ours: a mark in an extended attribute of each.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, XattrFlags, fsetxattr, lgetxattr, linkat, lsetxattr, open};
use thiserror::Error;

use crate::mark::{Mark, Owner};
use crate::removal::{Marked, Removal, remove_left_over};
use crate::system::is_on_this_machine;

/// The extended attribute that holds a file's mark.
const MARK_ATTRIBUTE: &str = "user.virtbench.mark";

/// No mark is longer, in bytes.
const LONGEST: usize = 1024;

/// A file that cannot be made or removed.
#[derive(Debug, Error)]
pub enum FileMarkError {
    /// It is somebody else's.
    #[error("{} is there already and was not made by virtbench: remove it, or choose another folder", .0.display())]
    Foreign(PathBuf),
    /// Another run made it and still lives.
    #[error("{} belongs to another run: wait for it, or choose another folder", .0.display())]
    Needed(PathBuf),
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// A file that may carry a mark.
struct MarkedFile(PathBuf);

impl MarkedFile {
    fn failed(&self, source: io::Error) -> FileMarkError {
        FileMarkError::Io { path: self.0.clone(), source }
    }
}

impl Marked for MarkedFile {
    type Error = FileMarkError;

    fn written(&mut self) -> Result<Option<String>, FileMarkError> {
        if !fs::symlink_metadata(&self.0).map_err(|source| self.failed(source))?.is_file() {
            return Ok(None);
        }
        Ok(read_attribute(&self.0))
    }

    fn is_here(&self) -> bool {
        is_on_this_machine(&self.0)
    }

    fn remove(&mut self) -> Result<(), FileMarkError> {
        fs::remove_file(&self.0).map_err(|source| self.failed(source))
    }
}

/// What the mark's attribute of a file or folder says. A file system without such attributes holds no mark.
#[must_use]
pub fn read_attribute(path: &Path) -> Option<String> {
    let mut value = [0; LONGEST];
    let length = lgetxattr(path, MARK_ATTRIBUTE, &mut value).ok()?;
    str::from_utf8(value.get(..length)?).ok().map(str::to_owned)
}

/// Marks a file or folder by its attribute.
///
/// # Errors
/// It is on a file system without such attributes, or is not this user's.
pub fn write_attribute(path: &Path, mark: &Mark) -> io::Result<()> {
    Ok(lsetxattr(path, MARK_ATTRIBUTE, mark.to_string().as_bytes(), XattrFlags::empty())?)
}

/// Makes an empty file with a mark, to be read and written. One of the same name is replaced if this process made it, or another one of
/// virtbench's that has ended. On a file system without extended attributes what a killed process leaves counts as somebody else's.
///
/// # Errors
/// There is a file that somebody else made or that another run uses, or none can be made there.
pub fn make_marked_file(path: &Path, mark: &Mark) -> Result<File, FileMarkError> {
    let failed = |source| FileMarkError::Io { path: path.to_owned(), source };
    if fs::symlink_metadata(path).is_ok() {
        match remove_left_over(&mut MarkedFile(path.to_owned()))? {
            Removal::Removed(_) => {}
            Removal::Needed(mark) if mark.owner() == Owner::Own => {
                fs::remove_file(path).map_err(failed)?;
            }
            Removal::Needed(_) => return Err(FileMarkError::Needed(path.to_owned())),
            Removal::Foreign => return Err(FileMarkError::Foreign(path.to_owned())),
        }
    }
    if let Some(file) = make_at_once(path, mark) {
        return Ok(file);
    }
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(failed)?;
    // Where it cannot be marked, it counts as somebody else's once this process has ended.
    let _ = write_attribute(path, mark);
    Ok(file)
}

/// Marks a file before it has a name, so that a kill leaves none without a mark. Not every file system has files without names.
fn make_at_once(path: &Path, mark: &Mark) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?);
    fsetxattr(&file, MARK_ATTRIBUTE, mark.to_string().as_bytes(), XattrFlags::empty()).ok()?;
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW).ok()?;
    Some(file)
}

/// Removes a file if virtbench made it and its maker has ended.
///
/// # Errors
/// It cannot be read or removed.
pub fn remove_marked_file(path: &Path) -> Result<Removal, FileMarkError> {
    remove_left_over(&mut MarkedFile(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::mark::{Maker, RunId};

    fn mark() -> Mark {
        Mark::new(RunId::new_random(), "disk")
    }

    fn left_over(path: &Path) {
        let mut mark = mark();
        mark.maker.began += 1;
        drop(make_marked_file(path, &mark).unwrap());
        fs::write(path, "old").unwrap();
    }

    #[test]
    fn a_file_of_a_stranger_with_the_same_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("virtbench-vm-1.img");
        fs::write(&path, "precious").unwrap();
        let error = make_marked_file(&path, &mark()).unwrap_err();
        assert!(error.to_string().contains("was not made by virtbench"), "{error}");
        assert!(matches!(remove_marked_file(&path), Ok(Removal::Foreign)));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_file_has_its_mark_before_it_has_a_name_and_is_as_any_other() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let [path, plain] = ["disk.img", "plain"].map(|name| folder.path().join(name));
        let mark = mark();
        let file = make_at_once(&path, &mark).unwrap();
        assert_eq!(read_attribute(&path).as_deref().and_then(Mark::parse), Some(mark.clone()));
        drop(File::create(&plain).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&path), mode(&plain));
        drop(file);
        assert!(make_at_once(&path, &mark).is_none(), "what is there stays");
        let from_here = make_marked_file(Path::new("/nonexistent/disk.img"), &mark);
        assert!(matches!(from_here, Err(FileMarkError::Io { .. })));
    }

    #[test]
    fn what_a_killed_process_left_is_replaced_and_what_a_living_one_uses_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        left_over(&path);
        assert_eq!(make_marked_file(&path, &mark()).unwrap().metadata().unwrap().len(), 0);
        // This process made it: it may make it anew.
        drop(make_marked_file(&path, &mark()).unwrap());
        fs::remove_file(&path).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut of_child = mark();
        of_child.maker = Maker::of_process(child.id());
        drop(make_marked_file(&path, &of_child).unwrap());
        let refused = make_marked_file(&path, &mark());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(refused, Err(FileMarkError::Needed(_))), "{refused:?}");
        assert_eq!(read_attribute(&path).as_deref().and_then(Mark::parse), Some(of_child));
    }

    #[test]
    fn a_link_to_a_file_of_ours_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, link] = ["ours", "link"].map(|name| folder.path().join(name));
        left_over(&ours);
        symlink(&ours, &link).unwrap();
        assert!(matches!(make_marked_file(&link, &mark()), Err(FileMarkError::Foreign(_))));
        assert!(ours.exists() && link.exists());
    }
}
