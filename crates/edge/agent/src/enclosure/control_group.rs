//! Groups of processes whose means the host's kernel limits: control groups, of version 1 or 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use procfs::process::Process;
use thiserror::Error;
use virtbench_mark::{
    Announced, Mark, Marked, RunId, read_attribute, remove_announced, remove_left_over, write_attribute,
};

/// What the groups' names begin with; then comes the process's number, for people who look. The name proves nothing: each has a mark.
const PREFIX: &str = "virtbench-";
/// A group can be removed once the kernel has let go of its last process: tries, and the time between them.
const REMOVAL: (u32, Duration) = (100, Duration::from_millis(20));
/// The file of a group that lists its processes, and takes new ones.
pub const PROCESSES: &str = "cgroup.procs";

/// A group cannot be made, or does not take a limit.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct GroupError {
    /// What was tried.
    pub action: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

/// Where groups are, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hierarchy {
    /// cgroup v1, of one controller.
    V1(PathBuf),
    /// cgroup v2.
    V2(PathBuf),
}

impl Hierarchy {
    /// The one that is mounted and has a controller, which the versions may call differently; of v1 if both have it, which
    /// cannot be.
    #[must_use]
    pub fn find(v1: &str, v2: &str) -> Option<Self> {
        let mounts = Process::myself().and_then(|process| process.mountinfo()).map(|mounts| mounts.0);
        let mounts = mounts.unwrap_or_default();
        let of_v1 = mounts
            .iter()
            .find(|mount| mount.fs_type == "cgroup" && mount.super_options.contains_key(v1))
            .map(|mount| Self::V1(mount.mount_point.clone()));
        let has_it = |root: &Path| {
            let controllers = fs::read_to_string(root.join("cgroup.controllers"));
            controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == v2))
        };
        let of_v2 = || mounts.iter().find(|mount| mount.fs_type == "cgroup2" && has_it(&mount.mount_point));
        of_v1.or_else(|| of_v2().map(|mount| Self::V2(mount.mount_point.clone())))
    }

    /// The one of version 2 that is mounted, whatever controllers it has.
    #[must_use]
    pub fn find_unified() -> Option<Self> {
        let mounts = Process::myself().and_then(|process| process.mountinfo()).ok()?.0;
        mounts.into_iter().find(|mount| mount.fs_type == "cgroup2").map(|mount| Self::V2(mount.mount_point))
    }

    /// Its top.
    #[must_use]
    pub fn root(&self) -> &Path {
        match self {
            Self::V1(root) | Self::V2(root) => root,
        }
    }

    /// v2 gives a controller to the groups below another only when told to.
    ///
    /// # Errors
    /// It has none of this name, or root is needed.
    pub fn enable(&self, controller: &str) -> Result<(), GroupError> {
        let Self::V2(root) = self else { return Ok(()) };
        let path = root.join("cgroup.subtree_control");
        let names = fs::read_to_string(&path).unwrap_or_default();
        let is_on = names.split_whitespace().any(|name| name == controller);
        if is_on { Ok(()) } else { write(&path, &format!("+{controller}")) }
    }

    /// Removes what killed runs left.
    fn sweep(&self) {
        for entry in fs::read_dir(self.root()).into_iter().flatten().flatten() {
            // Whatever cannot be removed now is tried again by the next run.
            let _ = remove_left_over(&mut LeftGroup(entry.path()));
        }
        remove_announced(self.root(), remove);
    }
}

/// A group that may be virtbench's.
struct LeftGroup(PathBuf);

impl Marked for LeftGroup {
    type Error = io::Error;

    fn written(&mut self) -> io::Result<Option<String>> {
        Ok(read_attribute(&self.0))
    }

    fn is_here(&self) -> bool {
        true
    }

    fn remove(&mut self) -> io::Result<()> {
        remove(&self.0)
    }
}

/// Removes a group with those below it, some of which an init of theirs may be removing at this moment.
fn remove(path: &Path) -> io::Result<()> {
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return gone(error),
    };
    for entry in entries.flatten().filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&entry.path())?;
    }
    fs::remove_dir(path).or_else(gone)
}

fn write(path: &Path, text: &str) -> Result<(), GroupError> {
    fs::write(path, text).map_err(|source| GroupError { action: "write", path: path.to_owned(), source })
}

/// A group. It goes when this does; one that a kill left goes when the next is made.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Makes one without processes; `controller` is version 2's name of the one that it is for.
    ///
    /// # Errors
    /// Root is needed, or the controller cannot be had.
    pub fn make(hierarchy: &Hierarchy, controller: &str) -> Result<Self, GroupError> {
        hierarchy.enable(controller)?;
        Self::make_plain(hierarchy)
    }

    /// Makes one that limits nothing.
    ///
    /// # Errors
    /// Root is needed.
    pub fn make_plain(hierarchy: &Hierarchy) -> Result<Self, GroupError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        hierarchy.sweep();
        let (mark, number) = (Mark::new(RunId::new_random(), "group"), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PREFIX}{}-{}-{number}", std::process::id(), mark.run);
        let path = hierarchy.root().join(&name);
        // A kill between the two steps leaves a group without a mark.
        let _announced = Announced::new(hierarchy.root(), &name, &mark);
        fs::create_dir(&path).map_err(|source| GroupError { action: "make", path: path.clone(), source })?;
        // Before Linux 5.7 groups take no mark: what a kill leaves stays then.
        let _ = write_attribute(&path, &mark);
        Ok(Self { path })
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// It does not take that.
    pub fn write(&self, file: &str, text: &str) -> Result<(), GroupError> {
        write(&self.path.join(file), text)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let (tries, pause) = REMOVAL;
        for _ in 0..tries {
            match remove(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(pause),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_of_version_2_is_switched_on_once() {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("cgroup.subtree_control");
        fs::write(&control, "cpu memory\n").unwrap();
        let v2 = Hierarchy::V2(folder.path().to_owned());
        drop(ControlGroup::make(&v2, "io").unwrap());
        assert_eq!(fs::read_to_string(&control).unwrap(), "+io");
        fs::write(&control, "io memory\n").unwrap();
        v2.enable("io").unwrap();
        assert_eq!(fs::read_to_string(&control).unwrap(), "io memory\n", "it is on already");
        Hierarchy::V1(folder.path().join("none")).enable("io").unwrap();
    }

    #[test]
    fn groups_of_runs_that_have_ended_are_swept_and_no_others() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let hierarchy = Hierarchy::V1(folder.path().to_owned());
        let make = |name: &str, mark: Option<String>| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("init/system.slice")).unwrap();
            let mark = mark.and_then(|text| Mark::parse(&text));
            mark.iter().for_each(|mark| write_attribute(&path, mark).unwrap());
        };
        let mine = Mark::new(RunId::new_random(), "group").to_string();
        let ended = mine.rsplit_once('=').map(|(start, _)| format!("{start}=1"));
        make("virtbench-ended-0", ended.clone());
        make("renamed", ended.clone());
        make("virtbench-lives-0", Some(mine));
        make("virtbench-2147483646-5-0", None);
        make("machine", None);
        make("virtbench-begun-0", None);
        let begun = ended.and_then(|text| Mark::parse(&text)).unwrap();
        std::mem::forget(Announced::new(folder.path(), "virtbench-begun-0", &begun));
        drop(ControlGroup::make(&hierarchy, "io").unwrap());
        let mut found: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, ["machine", "virtbench-2147483646-5-0", "virtbench-lives-0"]);
    }
}
