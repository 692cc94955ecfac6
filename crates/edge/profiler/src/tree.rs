//! A process and its descendants: what they have read, written and computed.

use std::collections::{BTreeMap, BTreeSet};

use procfs::process::{Process, StatFlags, all_processes};

/// Accounts of a whole tree, since each of its processes began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Accounts {
    /// Bytes that storage was asked for.
    pub read_bytes: u64,
    /// Bytes that storage was or will be given; less what was truncated before that.
    pub written_bytes: u64,
    /// System calls that read.
    pub read_calls: u64,
    /// System calls that write.
    pub write_calls: u64,
    /// Bytes that those copied.
    pub copied_bytes: u64,
    /// Ticks in user mode.
    pub user_ticks: u64,
    /// Ticks in kernel mode.
    pub system_ticks: u64,
}

impl Accounts {
    /// What came in between.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            read_calls: self.read_calls.saturating_sub(earlier.read_calls),
            write_calls: self.write_calls.saturating_sub(earlier.write_calls),
            copied_bytes: self.copied_bytes.saturating_sub(earlier.copied_bytes),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }
}

/// Ticks that the kernel's own threads have used since boot.
pub(crate) fn kernel_thread_ticks() -> u64 {
    let stats = all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok());
    let kernels = stats.filter(|stat| stat.flags().is_ok_and(|flags| flags.contains(StatFlags::PF_KTHREAD)));
    kernels.map(|stat| stat.utime + stat.stime).sum()
}

/// Processor time that the kernel's own threads have used since boot, in seconds.
#[must_use]
pub fn kernel_threads_s() -> f64 {
    kernel_thread_ticks() as f64 / procfs::ticks_per_second() as f64
}

/// The tree under a process, as it is now.
#[derive(Debug)]
pub(crate) struct Tree {
    root: i32,
    /// Whether the root itself belongs to it.
    with_root: bool,
    /// The last accounts of each process seen, by id and start time: a process that was reaped by
    /// somebody outside the tree is not forgotten.
    seen: BTreeMap<(i32, u64), Accounts>,
    /// Processes whose I/O accounts could never be read.
    pub hidden: usize,
}

impl Tree {
    pub(crate) fn new(root: u32, with_root: bool) -> Self {
        Self { root: i32::try_from(root).unwrap_or(i32::MAX), with_root, seen: BTreeMap::new(), hidden: 0 }
    }

    /// Processes of the tree, zombies that nobody has waited for included.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let mut parents = BTreeMap::new();
        let mut found = BTreeMap::new();
        for process in all_processes().into_iter().flatten().flatten() {
            if let Ok(stat) = process.stat() {
                parents.insert(stat.pid, stat.ppid);
                found.insert(stat.pid, process);
            }
        }
        let descends = |pid: i32| {
            let mut at = pid;
            // No chain of parents is longer than there are processes.
            for _ in 0..=parents.len() {
                if at == self.root {
                    return true;
                }
                match parents.get(&at) {
                    Some(parent) if *parent > 0 => at = *parent,
                    _ => return false,
                }
            }
            false
        };
        let members: BTreeSet<i32> = found
            .keys()
            .copied()
            .filter(|pid| (self.with_root || *pid != self.root) && descends(*pid))
            .collect();
        found.into_iter().filter(|(pid, _)| members.contains(pid)).map(|(_, process)| process).collect()
    }

    /// Threads of the tree.
    pub(crate) fn threads(&self) -> Vec<u32> {
        let ids = |process: &Process| -> Vec<u32> {
            let tasks = process.tasks().into_iter().flatten().flatten();
            tasks.filter_map(|task| u32::try_from(task.tid).ok()).collect()
        };
        self.processes().iter().flat_map(ids).collect()
    }

    /// Reads the accounts of every process of the tree, and gives their sum with those that are gone.
    ///
    /// A process that was waited for is in its parent's accounts: once it is gone its own are dropped if
    /// the parent still is in the tree.
    pub(crate) fn sample(&mut self) -> Accounts {
        let mut now = BTreeMap::new();
        self.hidden = 0;
        for process in self.processes() {
            let Ok(stat) = process.stat() else { continue };
            // Of one that has ended only root may read the I/O accounts: what was read last stands for them.
            let io = process.io().ok().map(|io| Accounts {
                read_bytes: io.read_bytes,
                written_bytes: io.write_bytes.saturating_sub(io.cancelled_write_bytes),
                read_calls: io.syscr,
                write_calls: io.syscw,
                copied_bytes: io.rchar.saturating_add(io.wchar),
                ..Accounts::default()
            });
            let before = self.seen.get(&(stat.pid, stat.starttime));
            let io = io.or_else(|| before.copied());
            self.hidden += usize::from(io.is_none());
            let with_children = |own: u64, children: i64| own + u64::try_from(children).unwrap_or(0);
            let accounts = Accounts {
                user_ticks: with_children(stat.utime, stat.cutime),
                system_ticks: with_children(stat.stime, stat.cstime),
                ..io.unwrap_or_default()
            };
            now.insert((stat.pid, stat.starttime), accounts);
        }
        if !now.is_empty() {
            self.seen = now;
        }
        let sum = |of: fn(&Accounts) -> u64| self.seen.values().map(of).sum();
        Accounts {
            read_bytes: sum(|a| a.read_bytes),
            written_bytes: sum(|a| a.written_bytes),
            read_calls: sum(|a| a.read_calls),
            write_calls: sum(|a| a.write_calls),
            copied_bytes: sum(|a| a.copied_bytes),
            user_ticks: sum(|a| a.user_ticks),
            system_ticks: sum(|a| a.system_ticks),
        }
    }
}
