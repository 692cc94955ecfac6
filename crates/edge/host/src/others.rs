//! Processor time of programs that have nothing to do with what is measured.

use std::collections::BTreeMap;
use std::fs;

use procfs::process::{Stat, all_processes};
use procfs::{CpuTime, ticks_per_second};

/// The kernel's mark of its own threads, in a process's flags.
const KERNEL_THREAD: u32 = 0x0020_0000;
/// What the link to the PID namespace says that sees every process.
const SEES_ALL: &str = "pid:[4026531836]";

/// What the processes that are not this one, nor descend from it, have used until now, in ticks; the
/// kernel's threads are left out, which work for those who read and write. `total` are the host's
/// accounts at the same moment: in a container, which sees its own processes only, the time in user mode
/// that this process and its children have no part in.
///
/// Time of processes that have ended is that of their parents, so that sums of two moments compare.
pub(crate) fn others_ticks(total: &CpuTime) -> Option<u64> {
    let stats: Vec<Stat> = all_processes().ok()?.filter_map(|process| process.ok()?.stat().ok()).collect();
    let parents: BTreeMap<i32, i32> = stats.iter().map(|stat| (stat.pid, stat.ppid)).collect();
    let own = i32::try_from(std::process::id()).ok()?;
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == SEES_ALL) {
        let others = stats.iter().filter(|stat| is_other(stat, &parents, own));
        return Some(others.map(|stat| user_ticks(stat) + system_ticks(stat)).sum());
    }
    let ours: u64 = stats.iter().filter(|stat| descends(&parents, stat.pid, own)).map(user_ticks).sum();
    Some((total.user + total.nice).saturating_sub(ours))
}

/// A process and those that descend from it, the process itself first.
#[must_use]
pub fn with_descendants(process: u32) -> Vec<u32> {
    let stats = all_processes().into_iter().flatten().filter_map(|process| process.ok()?.stat().ok());
    let parents: BTreeMap<i32, i32> = stats.map(|stat| (stat.pid, stat.ppid)).collect();
    let root = i32::try_from(process).unwrap_or(i32::MAX);
    let below = parents.keys().filter(|pid| **pid != root && descends(&parents, **pid, root));
    std::iter::once(process).chain(below.filter_map(|pid| u32::try_from(*pid).ok())).collect()
}

/// In percent of one processor, from one sum of ticks to a later one `seconds` afterwards.
pub(crate) fn others_percent(before: Option<u64>, after: Option<u64>, seconds: f64) -> Option<f64> {
    let ticks = after?.saturating_sub(before?) as f64;
    Some(ticks / ticks_per_second() as f64 / seconds * 100.0)
}

fn is_other(stat: &Stat, parents: &BTreeMap<i32, i32>, own: i32) -> bool {
    stat.flags & KERNEL_THREAD == 0 && !descends(parents, stat.pid, own)
}

/// Whether a process is `ancestor` or descends from it. Bounded by the number of processes, whatever
/// changed while they were read.
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

fn user_ticks(stat: &Stat) -> u64 {
    stat.utime + u64::try_from(stat.cutime).unwrap_or(0)
}

fn system_ticks(stat: &Stat) -> u64 {
    stat.stime + u64::try_from(stat.cstime).unwrap_or(0)
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

    #[test]
    fn a_child_of_this_process_is_no_other_program_and_its_parent_is() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let stats: Vec<Stat> = all_processes().unwrap().filter_map(|one| one.ok()?.stat().ok()).collect();
        let parents: BTreeMap<i32, i32> = stats.iter().map(|stat| (stat.pid, stat.ppid)).collect();
        let _ = child.kill();
        let _ = child.wait();
        let own = i32::try_from(std::process::id()).unwrap();
        let of = |process: i32| stats.iter().find(|stat| stat.pid == process).unwrap();
        let other = |process: i32| is_other(of(process), &parents, own);
        assert!(!other(i32::try_from(child.id()).unwrap()) && !other(own));
        assert!(other(of(own).ppid));
    }

    #[test]
    fn ticks_become_percent_and_what_shrank_is_nothing() {
        let second = ticks_per_second();
        assert_eq!(others_percent(Some(0), Some(2 * second), 1.0), Some(200.0));
        assert_eq!(others_percent(Some(5), Some(3), 1.0), Some(0.0));
        assert_eq!(others_percent(None, Some(3), 1.0), None);
    }
}
