//! Processor time of programs that have nothing to do with what is measured.

use std::fs;

use procfs::process::Stat;
use procfs::{CpuTime, ticks_per_second};

use crate::processes::{Processes, system_ticks, user_ticks};

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
    let processes = Processes::read().ok()?;
    let own = i32::try_from(std::process::id()).ok()?;
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == SEES_ALL) {
        let others = processes.all().iter().filter(|stat| is_other(stat, &processes, own));
        return Some(others.map(|stat| user_ticks(stat) + system_ticks(stat)).sum());
    }
    let ours = processes.all().iter().filter(|stat| processes.descends(stat.pid, own));
    let ours: u64 = ours.map(user_ticks).sum();
    Some((total.user + total.nice).saturating_sub(ours))
}

/// In percent of one processor, from one sum of ticks to a later one `seconds` afterwards.
pub(crate) fn others_percent(before: Option<u64>, after: Option<u64>, seconds: f64) -> Option<f64> {
    let ticks = after?.saturating_sub(before?) as f64;
    Some(ticks / ticks_per_second() as f64 / seconds * 100.0)
}

fn is_other(stat: &Stat, processes: &Processes, own: i32) -> bool {
    stat.flags & KERNEL_THREAD == 0 && !processes.descends(stat.pid, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_this_process_is_no_other_program_and_its_parent_is() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let processes = Processes::read().unwrap();
        let _ = child.kill();
        let _ = child.wait();
        let own = i32::try_from(std::process::id()).unwrap();
        let of = |process: u32| processes.get(process).unwrap();
        let other = |process: u32| is_other(of(process), &processes, own);
        assert!(!other(child.id()) && !other(std::process::id()));
        assert!(other(u32::try_from(of(std::process::id()).ppid).unwrap()));
    }

    #[test]
    fn ticks_become_percent_and_what_shrank_is_nothing() {
        let second = ticks_per_second();
        assert_eq!(others_percent(Some(0), Some(2 * second), 1.0), Some(200.0));
        assert_eq!(others_percent(Some(5), Some(3), 1.0), Some(0.0));
        assert_eq!(others_percent(None, Some(3), 1.0), None);
    }
}
