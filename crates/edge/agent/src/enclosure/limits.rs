//! The memory and the processors of a guest, for a process.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{io, thread};

use procfs::process::Process;
use rustix::io::write;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thiserror::Error;
use virtbench_mark::{
    Announced, Mark, Marked, RunId, read_attribute, remove_announced, remove_left_over, write_attribute,
};

/// Numbers of the host's processors that this process may use.
///
/// # Errors
/// The kernel has more than are reckoned with.
pub fn usable_processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// The processors of an appliance of this number, of those that are `allowed`: the first one has the first ones, others have those
/// that follow, as long as there are any, then the first ones again.
#[must_use]
pub fn processors_in_turn(allowed: &[usize], number: usize, vcpus: u32) -> Vec<usize> {
    let vcpus = (vcpus as usize).min(allowed.len());
    let first = (number * vcpus).checked_rem(allowed.len()).unwrap_or(0);
    allowed.iter().copied().cycle().skip(first).take(vcpus).collect()
}

/// What a process and all that it starts may use.
#[derive(Debug, Default)]
pub struct Limits {
    groups: Vec<ControlGroup>,
    processors: Vec<usize>,
    /// What could not be had, with the reason.
    pub notes: Vec<String>,
}

impl Limits {
    /// Gets ready to limit: `vcpus` processors, those that are named, or the first ones that this process may use.
    ///
    /// # Errors
    /// Nobody can say which those are.
    pub fn make(memory_bytes: u64, vcpus: u32, processors: &[usize]) -> io::Result<Self> {
        let mut limits = Self::default();
        let allowed: Vec<usize> = match processors {
            [] => usable_processors()?,
            named => named.to_vec(),
        };
        limits.processors = allowed.into_iter().take(vcpus as usize).collect();
        if limits.processors.len() < vcpus as usize {
            let has = limits.processors.len();
            limits.notes.push(format!("{vcpus} processors unavailable: the host has {has} for it"));
        }
        let list = limits.processors.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        limits.add("memory", "memory", &|hierarchy, group| memory(hierarchy, group, memory_bytes));
        limits.add("cpuset", "cpuset", &|hierarchy, group| cpuset(hierarchy, group, &list));
        Ok(limits)
    }

    /// Has the processes be in a group of version 2, in which an init of theirs can make its own.
    ///
    /// # Errors
    /// There is no such hierarchy, or no group can be made; in words.
    pub fn add_init(&mut self) -> Result<(), String> {
        let hierarchy = Hierarchy::find_unified().ok_or("no control groups of version 2 are mounted here")?;
        let is_in = |group: &ControlGroup| group.path().parent() == Some(hierarchy.root());
        if !self.groups.iter().any(is_in) {
            let group = ControlGroup::make_plain(&hierarchy).map_err(|error| error.to_string())?;
            self.groups.push(group);
        }
        Ok(())
    }

    /// Sets one limit, or notes why not.
    fn add(
        &mut self,
        what: &str,
        controller: &str,
        set: &dyn Fn(&Hierarchy, &ControlGroup) -> Result<(), GroupError>,
    ) {
        let Some(hierarchy) = Hierarchy::find(controller, controller) else {
            return self.notes.push(format!(
                "limit of {what} unavailable: the kernel has no such cgroup controller mounted"
            ));
        };
        // In version 2 a process is in one group, which then has all controllers.
        let there = self
            .groups
            .iter()
            .find(|group| matches!(&hierarchy, Hierarchy::V2(root) if group.path().parent() == Some(root)));
        let done = match there {
            Some(group) => hierarchy.enable(controller).and_then(|()| set(&hierarchy, group)),
            None => ControlGroup::make(&hierarchy, controller)
                .and_then(|group| set(&hierarchy, &group).map(|()| self.groups.push(group))),
        };
        if let Err(error) = done {
            self.notes.push(format!("limit of {what} unavailable: {error}"));
        }
    }

    /// Has a command, and all that it starts, run within the limits from its first instruction on.
    ///
    /// # Errors
    /// A group cannot be opened.
    pub fn apply(&self, command: &mut Command) -> io::Result<()> {
        let open = |group: &ControlGroup| OpenOptions::new().write(true).open(group.path().join(PROCESSES));
        let lists: Vec<OwnedFd> =
            self.groups.iter().map(|group| open(group).map(Into::into)).collect::<Result<_, _>>()?;
        let mut set = CpuSet::new();
        for processor in self.processors.iter().filter(|processor| **processor < CpuSet::MAX_CPU) {
            set.set(*processor);
        }
        let enter = move || {
            for list in &lists {
                // Zero stands for the process that writes it.
                write(list, b"0")?;
            }
            // After the groups, which set it as well. This is all there is where they cannot be had.
            Ok(sched_setaffinity(None, &set)?)
        };
        // SAFETY: between fork and exec the closure makes system calls only, and neither allocates nor takes a lock.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }
}

fn memory(hierarchy: &Hierarchy, group: &ControlGroup, bytes: u64) -> Result<(), GroupError> {
    match hierarchy {
        Hierarchy::V1(_) => {
            group.write("memory.limit_in_bytes", &bytes.to_string())?;
            group.write("memory.swappiness", "0")
        }
        Hierarchy::V2(_) => {
            group.write("memory.max", &bytes.to_string())?;
            // The file is there only where the kernel accounts for swap.
            let _ = group.write("memory.swap.max", "0");
            Ok(())
        }
    }
}

fn cpuset(hierarchy: &Hierarchy, group: &ControlGroup, list: &str) -> Result<(), GroupError> {
    if let Hierarchy::V1(root) = hierarchy {
        // A new group of version 1 has no memory nodes, and takes no process before it has.
        let nodes = fs::read_to_string(root.join("cpuset.mems")).unwrap_or_else(|_| "0".into());
        group.write("cpuset.mems", nodes.trim())?;
    }
    group.write("cpuset.cpus", list)
}

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
        if is_on { Ok(()) } else { write_setting(&path, &format!("+{controller}")) }
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

fn write_setting(path: &Path, text: &str) -> Result<(), GroupError> {
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
        write_setting(&self.path.join(file), text)
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
