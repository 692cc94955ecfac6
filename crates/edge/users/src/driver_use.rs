//! Whether a driver itself was the limit of a load.

/// A thread that is busier than this is what limits the load, in percent.
const BUSY_PERCENT: f64 = 90.0;
/// A driver whose control group was held back for longer than this is what limits the load, in percent.
const THROTTLED_PERCENT: f64 = 5.0;
/// A thread that waited for a processor for longer than this is reported, in percent.
const WAITED_PERCENT: f64 = 25.0;
/// Starts that came too late though a user was free: more than this share of those offered, in percent.
const LATE_PERCENT: f64 = 1.0;
/// Fewer are chance.
const FEW_LATE: u64 = 2;

/// What a thread used and had to wait for while measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How long it was ready to run and had no processor, in nanoseconds, where that is counted.
    pub waited_ns: Option<u64>,
    /// How long the process was held back by the quota of a control group, in nanoseconds, where that is counted.
    pub throttled_ns: Option<u64>,
    /// Intended starts that began too late though a user was free.
    pub late_starts: u64,
    /// How long that was looked at, in nanoseconds.
    pub over_ns: u64,
}

/// What a driver's threads used and had to wait for while measuring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriverUse {
    /// CPU time of all, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How busy the busiest was, in percent.
    pub busiest_percent: f64,
    /// For how much of the time the one that waited longest had no processor, in percent.
    pub waited_percent: Option<f64>,
    /// For how much of the time the driver was held back by a quota, in percent.
    pub throttled_percent: Option<f64>,
    /// Intended starts that began too late though a user was free.
    pub late_starts: u64,
    /// Whether the driver is the limit.
    pub is_limit: bool,
}

impl DriverUse {
    /// What the threads used together, of a load that offered so many operations where that is known.
    #[must_use]
    pub fn of_threads(threads: &[ThreadUse], offered: u64) -> Self {
        let percent = |ns: u64, one: &ThreadUse| ns as f64 * 100.0 / one.over_ns.max(1) as f64;
        let most = |of: fn(&ThreadUse) -> Option<u64>| {
            let all = threads.iter().filter_map(|one| Some(percent(of(one)?, one)));
            all.reduce(f64::max)
        };
        let busiest_percent = most(|one| Some(one.cpu_ns[0] + one.cpu_ns[1])).unwrap_or(0.0);
        let throttled_percent = most(|one| one.throttled_ns);
        let late_starts = threads.iter().map(|one| one.late_starts).sum();
        let has_late = late_starts > FEW_LATE && late_starts as f64 * 100.0 > offered as f64 * LATE_PERCENT;
        Self {
            cpu_ns: [0, 1].map(|part| threads.iter().map(|one| one.cpu_ns[part]).sum()),
            busiest_percent,
            waited_percent: most(|one| one.waited_ns),
            throttled_percent,
            late_starts,
            is_limit: busiest_percent > BUSY_PERCENT
                || throttled_percent.is_some_and(|percent| percent > THROTTLED_PERCENT)
                || has_late,
        }
    }

    /// What a reader should know.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let mut limit = |why: String| remarks.push(format!("the driver is the limit: {why}"));
        if self.busiest_percent > BUSY_PERCENT {
            limit(format!("its busiest thread was busy {:.0} % of the time", self.busiest_percent));
        }
        if let Some(percent) = self.throttled_percent.filter(|percent| *percent > THROTTLED_PERCENT) {
            limit(format!("the quota of its control group held it back for {percent:.0} % of the time"));
        }
        if self.is_limit && remarks.is_empty() {
            let late = self.late_starts;
            remarks.push(format!(
                "the driver is the limit: {late} operations began late though a user was free"
            ));
        }
        if let Some(percent) = self.waited_percent.filter(|percent| *percent > WAITED_PERCENT) {
            remarks.push(format!(
                "a thread of the driver waited for a processor {percent:.0} % of the time, which is in the response times"
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn thread(user: u64, system: u64) -> ThreadUse {
        ThreadUse { cpu_ns: [user, system], over_ns: SECOND, ..ThreadUse::default() }
    }

    fn remarks(one: ThreadUse) -> (bool, String) {
        let used = DriverUse::of_threads(&[thread(1, 1), one], 1_000);
        (used.is_limit, used.remarks().join("\n"))
    }

    #[test]
    fn the_busiest_thread_says_whether_the_driver_is_the_limit() {
        let used =
            DriverUse::of_threads(&[thread(800_000_000, 150_000_000), thread(10_000_000, 20_000_000)], 0);
        assert_eq!(
            (used.cpu_ns, used.busiest_percent, used.is_limit),
            ([810_000_000, 170_000_000], 95.0, true)
        );
        let idle = DriverUse::of_threads(&[ThreadUse::default()], 0);
        assert_eq!((idle.busiest_percent, idle.is_limit, idle.remarks().len()), (0.0, false, 0));
    }

    #[test]
    fn a_driver_that_is_not_let_work_is_the_limit_though_it_is_hardly_busy() {
        let held = ThreadUse { throttled_ns: Some(SECOND / 2), ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(held);
        assert!(is_limit && said.contains("quota") && said.contains("50 %"), "{said}");
        let late = ThreadUse { late_starts: 40, ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(late);
        assert!(is_limit && said.contains("40 operations began late"), "{said}");
        assert!(!remarks(ThreadUse { late_starts: 10, ..thread(1, 1) }).0, "1 % of a thousand is chance");
        let crowded = ThreadUse { waited_ns: Some(SECOND * 2 / 5), ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(crowded);
        assert!(!is_limit && said.contains("waited for a processor 40 %"), "{said}");
    }
}
