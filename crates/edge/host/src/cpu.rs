//! The host's CPU use, summed over all its processors as in [ESX Adapters 2006].

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
    processors: u32,
    /// What other programs have used, in ticks.
    others: Option<u64>,
}

impl CpuSample {
    /// Reads `/proc/stat`. Its accounts are kept in ticks of 10 ms.
    ///
    /// # Errors
    /// It cannot be read or understood.
    pub fn take() -> Result<Self, Unreadable> {
        let stats = KernelStats::current()?;
        let processors = u32::try_from(stats.cpu_time.len()).unwrap_or(u32::MAX);
        let others = others_ticks(&stats.total);
        Ok(Self { at: Instant::now(), total: stats.total, processors, others })
    }

    /// What was used from this sample to a `later` one.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUse {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64().max(1e-9);
        let percent = |spent: fn(&CpuTime) -> u64| {
            let ticks = spent(&later.total).saturating_sub(spent(&self.total)) as f64;
            ticks / procfs::ticks_per_second() as f64 / seconds * 100.0
        };
        // `user` includes guests already.
        let user_percent = percent(|time| time.user + time.nice);
        let system_percent = percent(|time| time.system + time.irq.unwrap_or(0) + time.softirq.unwrap_or(0));
        HostUse {
            cpu_percent: user_percent + system_percent,
            user_percent,
            system_percent,
            steal_percent: percent(|time| time.steal.unwrap_or(0)),
            others_percent: others_percent(self.others, later.others, seconds),
            processors: later.processors,
        }
    }
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
        let used = first.until(&later);
        assert!((used.user_percent - 150.0).abs() < 1e-9 && (used.cpu_percent - 200.0).abs() < 1e-9);
    }
}
