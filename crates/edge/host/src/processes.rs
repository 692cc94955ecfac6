//! The processes of this host and who descends from whom.

use std::collections::BTreeMap;

use procfs::ProcResult;
use procfs::process::{Stat, all_processes};

/// All processes that can be seen, each as it was when it was read.
#[derive(Debug)]
pub struct Processes {
    stats: Vec<Stat>,
    parents: BTreeMap<i32, i32>,
}

impl Processes {
    /// Reads the accounts of each; one that ends meanwhile is left out.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn read() -> ProcResult<Self> {
        let stats: Vec<Stat> = all_processes()?.filter_map(|process| process.ok()?.stat().ok()).collect();
        let parents = stats.iter().map(|stat| (stat.pid, stat.ppid)).collect();
        Ok(Self { stats, parents })
    }

    /// All, in no order.
    pub(crate) fn all(&self) -> &[Stat] {
        &self.stats
    }

    /// The one of this number, if it is there.
    #[must_use]
    pub fn get(&self, process: u32) -> Option<&Stat> {
        self.stats.iter().find(|stat| u32::try_from(stat.pid) == Ok(process))
    }

    /// The process of this number and those that descend from it, itself first; none if it is not there.
    pub fn tree(&self, process: u32) -> impl Iterator<Item = &Stat> {
        let root = self.get(process);
        let below = root.into_iter().flat_map(|root| {
            self.stats.iter().filter(|stat| stat.pid != root.pid && self.descends(stat.pid, root.pid))
        });
        root.into_iter().chain(below)
    }

    /// Whether a process is `ancestor` or descends from it.
    pub(crate) fn descends(&self, process: i32, ancestor: i32) -> bool {
        descends(&self.parents, process, ancestor)
    }
}

/// The numbers of a process and of those that descend from it, itself first; none if it is not there.
#[must_use]
pub fn with_descendants(process: u32) -> Vec<u32> {
    let processes = Processes::read().ok();
    let tree = processes.iter().flat_map(|all| all.tree(process));
    tree.filter_map(|stat| u32::try_from(stat.pid).ok()).collect()
}

/// Time in user code of a process and of its children that it has waited for, in ticks.
#[must_use]
pub fn user_ticks(stat: &Stat) -> u64 {
    stat.utime + u64::try_from(stat.cutime).unwrap_or(0)
}

/// The same in the kernel.
#[must_use]
pub fn system_ticks(stat: &Stat) -> u64 {
    stat.stime + u64::try_from(stat.cstime).unwrap_or(0)
}

/// Bounded by the number of processes, whatever changed while they were read.
fn descends(parents: &BTreeMap<i32, i32>, process: i32, ancestor: i32) -> bool {
    let mut current = process;
    for _ in 0..parents.len() {
        if current == ancestor {
            return true;
        }
        match parents.get(&current) {
            Some(parent) if *parent != 0 => current = *parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descent_is_followed_to_its_end_and_no_ring_holds_it_up() {
        let parents = BTreeMap::from([(1, 0), (5, 1), (6, 5), (7, 6), (9, 1), (20, 21), (21, 20)]);
        assert!(descends(&parents, 7, 5) && descends(&parents, 5, 5));
        assert!(!descends(&parents, 9, 5) && !descends(&parents, 1, 5) && !descends(&parents, 20, 5));
        assert!(!descends(&parents, 99, 5), "it has ended meanwhile");
    }
}
