//! The host's CPU use, summed over all its processors as in [ESX Adapters 2006], and of each.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use procfs::process::{Stat, all_processes};
use procfs::{CpuTime, CurrentSI, KernelStats, ProcError, ProcResult, ticks_per_second};
use virtbench_record::HostUse;

/// The accounts of `/proc/stat` cannot be read or understood.
pub type Unreadable = ProcError;

/// The processors' time accounts at one instant.
#[derive(Debug, Clone)]
pub struct CpuSample {
    at: Instant,
    total: CpuTime,
    each: Vec<CpuTime>,
    /// What other programs have used, in ticks.
    others: Option<u64>,
    /// Threads that run or want to at this instant.
    runnable: Option<u32>,
}

impl CpuSample {
    /// Reads `/proc/stat`. Its accounts are kept in ticks of 10 ms.
    ///
    /// # Errors
    /// It cannot be read or understood.
    pub fn take() -> Result<Self, Unreadable> {
        let stats = KernelStats::current()?;
        let others = others_ticks(&stats.total);
        Ok(Self {
            at: Instant::now(),
            total: stats.total,
            each: stats.cpu_time,
            others,
            runnable: stats.procs_running,
        })
    }

    /// What was used from this sample to a `later` one.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUse {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64().max(1e-9);
        let share = |spent: fn(&CpuTime) -> u64, before: &CpuTime, after: &CpuTime| {
            let ticks = spent(after).saturating_sub(spent(before)) as f64;
            ticks / procfs::ticks_per_second() as f64 / seconds * 100.0
        };
        let percent = |spent| share(spent, &self.total, &later.total);
        let (user_percent, system_percent) = (percent(user), percent(system));
        let is_same = self.each.len() == later.each.len();
        let each = |spent: fn(&CpuTime) -> u64| {
            let both = self.each.iter().zip(&later.each).filter(|_| is_same);
            both.map(|(before, after)| share(spent, before, after)).collect()
        };
        HostUse {
            cpu_percent: user_percent + system_percent,
            user_percent,
            system_percent,
            steal_percent: percent(|time| time.steal.unwrap_or(0)),
            others_percent: others_percent(self.others, later.others, seconds),
            runnable: self
                .runnable
                .zip(later.runnable)
                .map(|(one, other)| f64::midpoint(one.into(), other.into())),
            processors: u32::try_from(later.each.len()).unwrap_or(u32::MAX),
            each_percent: each(|time| user(time) + system(time)),
            each_user_percent: each(user),
        }
    }
}

/// In user mode, in ticks; that includes guests already.
fn user(time: &CpuTime) -> u64 {
    time.user + time.nice
}

/// In kernel mode with interrupts, in ticks.
fn system(time: &CpuTime) -> u64 {
    time.system + time.irq.unwrap_or(0) + time.softirq.unwrap_or(0)
}

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
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sample_held_against_itself_shows_no_use() {
        let sample = CpuSample::take().unwrap();
        let used = sample.until(&sample);
        assert!(used.processors > 0 && used.cpu_percent == 0.0);
    }

    #[test]
    fn ticks_of_the_host_become_percent_of_one_processor() {
        let first = CpuSample::take().unwrap();
        let mut later = CpuSample::take().unwrap();
        later.at = first.at + Duration::from_secs(2);
        later.total = first.total.clone();
        later.total.user += 3 * procfs::ticks_per_second();
        later.total.system += procfs::ticks_per_second();
        later.each = first.each.clone();
        later.each[0].user += procfs::ticks_per_second();
        let used = first.until(&later);
        assert!((used.user_percent - 150.0).abs() < 1e-9 && (used.cpu_percent - 200.0).abs() < 1e-9);
        assert_eq!(used.each_percent.len(), first.each.len());
        assert!((used.each_user_percent[0] - 50.0).abs() < 1e-9, "{used:?}");
        assert!(
            (used.each_percent[0] - 50.0).abs() < 1e-9
                && used.each_percent[1..].iter().all(|one| *one == 0.0)
        );
        later.each.push(first.total.clone());
        assert_eq!(first.until(&later).each_percent, [0.0; 0]);
    }

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

    #[test]
    fn descent_is_followed_to_its_end_and_no_ring_holds_it_up() {
        let parents = BTreeMap::from([(1, 0), (5, 1), (6, 5), (7, 6), (9, 1), (20, 21), (21, 20)]);
        assert!(descends(&parents, 7, 5) && descends(&parents, 5, 5));
        assert!(!descends(&parents, 9, 5) && !descends(&parents, 1, 5) && !descends(&parents, 20, 5));
        assert!(!descends(&parents, 99, 5), "it has ended meanwhile");
    }
}
