//! What the processors of another machine are busy with, told by its hypervisor.

use std::time::Instant;

use virtbench_record::HostUse;

/// The accounts of a machine's processors at one instant, all together.
#[derive(Debug, Clone, Copy)]
pub struct FarTimes {
    /// When they were read.
    pub at: Instant,
    /// User mode, guests included, in nanoseconds.
    pub user_ns: u64,
    /// Kernel mode, in nanoseconds.
    pub kernel_ns: u64,
    /// Processors summed over.
    pub processors: u32,
}

impl FarTimes {
    /// What was used until `later`. What a hypervisor below took away is not told.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUse {
        let elapsed_ns = later.at.duration_since(self.at).as_nanos().max(1) as f64;
        let percent = |begin: u64, end: u64| 100.0 * end.saturating_sub(begin) as f64 / elapsed_ns;
        let (user_percent, system_percent) =
            (percent(self.user_ns, later.user_ns), percent(self.kernel_ns, later.kernel_ns));
        HostUse {
            cpu_percent: user_percent + system_percent,
            user_percent,
            system_percent,
            processors: self.processors,
            ..HostUse::default()
        }
    }
}

/// What stands where nobody tells: no use of no processor.
pub(crate) const UNKNOWN: HostUse = HostUse {
    cpu_percent: 0.0,
    user_percent: 0.0,
    system_percent: 0.0,
    steal_percent: 0.0,
    others_percent: None,
    runnable: None,
    processors: 0,
    each_percent: Vec::new(),
    each_user_percent: Vec::new(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn use_is_what_was_used_between_two_instants() {
        let first = FarTimes { at: Instant::now(), user_ns: 7, kernel_ns: 9, processors: 4 };
        let later = FarTimes {
            at: first.at + Duration::from_secs(2),
            user_ns: 7 + 3_000_000_000,
            kernel_ns: 9 + 1_000_000_000,
            ..first
        };
        let used = first.until(&later);
        assert_eq!((used.cpu_percent, used.user_percent, used.processors), (200.0, 150.0, 4));
    }
}
