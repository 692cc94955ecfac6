//! The host's CPU use, summed over all its processors as in [ESX Adapters 2006], and of each.

use std::time::Instant;

use procfs::{CpuTime, CurrentSI, KernelStats, ProcError};
use virtbench_record::HostUse;

use crate::others::{others_percent, others_ticks};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
}
