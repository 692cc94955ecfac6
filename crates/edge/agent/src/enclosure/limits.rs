//! The memory and the processors of a guest, for a process.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::write;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::control_group::{ControlGroup, GroupError, Hierarchy, PROCESSES};

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
