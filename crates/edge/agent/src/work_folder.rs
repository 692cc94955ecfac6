//! The folder that a remote agent works in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use virtbench_mark::Owner;
use virtbench_mark::{MARK_FILE, Mark, RunId, mark_folder, read_folder_mark, remove_marked_folder};

use crate::folder_lock::{FolderLock, leave, make_folder, remove_when_free};

/// Its name. That proves nothing: an agent's folder is one that carries a mark.
const NAME: &str = ".virtbench-agent";
/// How the names of all folders begin that virtbench makes beside it.
const OURS: &str = ".virtbench-";
/// How the names of the folders begin that logins make.
#[cfg(windows)]
const LOGINS: &str = ".virtbench-login-";
/// A login is over in two minutes: what is older than this was left by one that was cut.
#[cfg(windows)]
const LOGIN_AGE: std::time::Duration = std::time::Duration::from_secs(3600);
/// What its mark says that it is for.
const PURPOSE: &str = "agent";
/// An agent that ends may remove the folder that another one has just found.
const ATTEMPTS: usize = 8;

/// A folder that nobody else uses and that goes with this value. One that a killed agent left is emptied and used. One that carries no mark
/// is somebody else's: it is refused, or used if it is empty.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    lock: FolderLock,
    /// Whether it was there before, and empty: then it stays.
    is_theirs: bool,
    /// Whether the folder that it is in goes too, if nothing else is in it.
    takes_parent: bool,
}

impl WorkFolder {
    /// Makes it in `parent`, which is made too if need be; one for each `name`.
    ///
    /// # Errors
    /// It cannot be made or emptied, belongs to somebody else, or another agent uses it; in words for the user.
    pub(crate) fn make(parent: &Path, name: Option<&str>) -> Result<Self, String> {
        let fails = |error: io::Error| format!("cannot use {}: {error}", parent.display());
        fs::create_dir_all(parent).map_err(fails)?;
        // Absolute, because the agent changes its own directory.
        let path = parent.canonicalize().map_err(fails)?.join(folder_name(name)?);
        let fails = |error: io::Error| format!("cannot use {}: {error}", path.display());
        for _ in 0..ATTEMPTS {
            let is_new = match make_folder(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fails(error)),
                made => made.is_ok(),
            };
            let Some(lock) = FolderLock::open(&path).map_err(fails)? else { continue };
            if !lock.take() {
                return Err(format!(
                    "{} is in use by another run of virtbench: wait for it, or name another folder of this machine",
                    path.display()
                ));
            }
            if !lock.is_of(&path) {
                continue;
            }
            let marked = |error| format!("cannot use {}: {error}", path.display());
            // Its maker would hold the lock if it lived.
            let is_ours = read_folder_mark(&path).map_err(marked)?.is_some();
            if is_ours {
                empty(&path).map_err(fails)?;
            } else if fs::read_dir(&path).map_err(fails)?.next().is_some() {
                return Err(format!(
                    "{} is not virtbench's, as there is no {MARK_FILE} of its in it, and stays as it is: name another folder of this \
                     machine, or call that one by another name",
                    path.display()
                ));
            }
            mark_folder(&path, &Mark::new(RunId::new_random(), PURPOSE)).map_err(marked)?;
            return Ok(Self { path, lock, is_theirs: !is_new && !is_ours, takes_parent: false });
        }
        Err(format!("{} is made and removed by others all the time", path.display()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Has the folder that it is in go with it, if nothing else is there.
    pub(crate) fn goes_with_parent(&mut self, goes: bool) {
        self.takes_parent = goes;
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        leave(&self.path);
        // What is left is known by its mark, and goes with the next agent there.
        if let Err(error) = remove_when_free(|| empty(&self.path)) {
            eprintln!("virtbench-agent: {} is not empty yet: {error}", self.path.display());
        }
        if !self.is_theirs {
            let _ = fs::remove_dir(&self.path);
        }
        self.lock.release();
        if self.takes_parent
            && let Some(parent) = self.path.parent()
        {
            let _ = fs::remove_dir(parent);
        }
    }
}

/// The folder's name for an agent of this name.
fn folder_name(name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else { return Ok(NAME.to_owned()) };
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    {
        return Err(format!("{name:?} is no name for an agent's folder"));
    }
    Ok(format!("{NAME}-{name}"))
}

/// Where an agent of another name works, beside one in `folder`; nothing where no agent has such a name.
#[cfg(unix)]
pub(crate) fn beside(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.parent()?.join(folder_name(Some(name)).ok()?))
}

/// Removes what killed agents and logins have left in a folder, by its mark, however old it is. What cannot be read or removed stays.
pub(crate) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_likely = entry.file_name().as_encoded_bytes().starts_with(OURS.as_bytes());
        if is_likely && let Err(error) = remove_marked_folder(&entry.path()) {
            eprintln!("virtbench-agent: {error}");
        }
    }
}

/// Removes the folder that the login made for this program, and what others have left beside it.
#[cfg(unix)]
pub(crate) fn end_login(login: &Path) {
    let is_own =
        read_folder_mark(login).is_ok_and(|mark| mark.is_some_and(|mark| mark.owner() == Owner::Own));
    if is_own {
        let _ = fs::remove_dir_all(login);
    }
    if let Some(parent) = login.parent() {
        sweep(parent);
    }
}

/// The mark goes last, so that what a kill leaves is still known to be ours.
fn empty(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == MARK_FILE {
            continue;
        }
        // Of the entry itself: nothing is followed.
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(path.join(MARK_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what logins have left in a folder whose controller did not come back: their marks are of another machine, so that only their age tells.
#[cfg(windows)]
pub(crate) fn sweep_logins(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_likely = entry.file_name().as_encoded_bytes().starts_with(LOGINS.as_bytes());
        let is_old = || {
            let made = entry.metadata().and_then(|facts| facts.modified()).ok();
            made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age > LOGIN_AGE)
        };
        let is_marked =
            || read_folder_mark(&path).is_ok_and(|mark| mark.is_some_and(|mark| mark.purpose() == "login"));
        if is_likely && is_old() && is_marked() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_used_by_one_agent_and_goes_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join("made/too");
        let folder = WorkFolder::make(&parent, None).unwrap();
        fs::write(folder.path().join("disk"), "x").unwrap();
        let refused = WorkFolder::make(&parent, None).unwrap_err();
        assert!(refused.contains("in use by another run"), "{refused}");
        let other = WorkFolder::make(&parent, Some("vm2")).unwrap();
        assert!(other.path() != folder.path() && WorkFolder::make(&parent, Some("vm2")).is_err());
        assert!(WorkFolder::make(&parent, Some("../vm3")).is_err());
        drop((folder, other));
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }

    /// A mark whose maker has ended.
    fn left_over() -> String {
        let mark = Mark::new(RunId::new_random(), PURPOSE).to_string();
        format!("{}1", mark)
    }

    #[test]
    fn what_a_killed_agent_left_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        for name in [NAME, ".virtbench-agent-vm7", ".virtbench-login-1"] {
            let left = temp.path().join(name);
            fs::create_dir_all(left.join("tree")).unwrap();
            fs::write(left.join("disk"), "x").unwrap();
            fs::write(left.join(MARK_FILE), left_over()).unwrap();
        }
        let folder = WorkFolder::make(temp.path(), None).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "its mark only");
        sweep(temp.path());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "the folder in use stays");
        drop(folder);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_users_folders_and_files_of_our_names_stay() {
        let temp = tempfile::tempdir().unwrap();
        let theirs = temp.path().join(NAME);
        fs::create_dir_all(theirs.join("sub")).unwrap();
        fs::write(theirs.join("sub/x"), "precious").unwrap();
        fs::write(temp.path().join(".virtbench-my-notes"), "precious").unwrap();
        fs::create_dir(temp.path().join(".virtbench-login-0")).unwrap();
        let refused = WorkFolder::make(temp.path(), None).unwrap_err();
        assert!(refused.contains("is not virtbench's"), "{refused}");
        sweep(temp.path());
        end_login(&temp.path().join(".virtbench-login-0"));
        assert!(theirs.join("sub/x").exists() && temp.path().join(".virtbench-my-notes").exists());
        assert!(temp.path().join(".virtbench-login-0").exists());
        // One that is empty has nothing to lose; it is used, and stays.
        let empty = temp.path().join(format!("{NAME}-vm1"));
        fs::create_dir(&empty).unwrap();
        fs::write(WorkFolder::make(temp.path(), Some("vm1")).unwrap().path().join("disk"), "x").unwrap();
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("theirs"), "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), temp.path().join(NAME)).unwrap();
        assert!(WorkFolder::make(temp.path(), None).is_err());
        assert!(elsewhere.path().join("theirs").exists());
    }
}
