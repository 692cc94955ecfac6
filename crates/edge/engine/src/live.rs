//! What is watched of a load while it runs: its counters, what the load generator itself costs, and whether it stood still.

use std::sync::atomic::{AtomicU64, Ordering};

use virtbench_counters::thread_cpu_ns;
use virtbench_units::format_duration_ns;

/// Buckets of latencies: bucket k holds those from 2^k ns to below 2^(k+1) ns, the last (nine minutes) all
/// that are longer.
pub const LIVE_BUCKETS: usize = 40;

/// Reads and writes of a load so far, ramp-up included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSample {
    /// Operations completed.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations of any kind that failed.
    pub errors: u64,
    /// Their latencies, summed up, in nanoseconds.
    pub latency_sum_ns: u64,
    /// Operations by their latency.
    pub latency: [u64; LIVE_BUCKETS],
}

impl Default for LiveSample {
    fn default() -> Self {
        Self { operations: 0, bytes: 0, errors: 0, latency_sum_ns: 0, latency: [0; LIVE_BUCKETS] }
    }
}

impl LiveSample {
    /// What was added since an earlier sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut added = Self {
            operations: self.operations.saturating_sub(earlier.operations),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            errors: self.errors.saturating_sub(earlier.errors),
            latency_sum_ns: self.latency_sum_ns.wrapping_sub(earlier.latency_sum_ns),
            latency: self.latency,
        };
        for (count, before) in added.latency.iter_mut().zip(&earlier.latency) {
            *count = count.saturating_sub(*before);
        }
        added
    }
}

/// One worker's counters. Only that worker writes, so that it needs no locked instruction; no other
/// worker's lie on the same lines of a cache, nor on the neighbour that prefetchers take along.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct LiveCounters {
    bytes: AtomicU64,
    errors: AtomicU64,
    latency_sum_ns: AtomicU64,
    latency: [AtomicU64; LIVE_BUCKETS],
}

impl Default for LiveCounters {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            bytes: zero(),
            errors: zero(),
            latency_sum_ns: zero(),
            latency: [const { AtomicU64::new(0) }; LIVE_BUCKETS],
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl LiveCounters {
    /// Counts a read or write.
    #[inline]
    pub(crate) fn success(&self, bytes: u32, latency_ns: u64) {
        let bucket = (latency_ns | 1).ilog2() as usize;
        add(&self.latency[bucket.min(LIVE_BUCKETS - 1)], 1);
        add(&self.bytes, bytes.into());
        add(&self.latency_sum_ns, latency_ns);
    }

    /// Counts an operation that failed.
    pub(crate) fn failure(&self) {
        add(&self.errors, 1);
    }

    /// Adds what is counted so far to a sample.
    pub(crate) fn add_to(&self, sample: &mut LiveSample) {
        sample.bytes += self.bytes.load(Ordering::Relaxed);
        sample.errors += self.errors.load(Ordering::Relaxed);
        let sum_ns = self.latency_sum_ns.load(Ordering::Relaxed);
        sample.latency_sum_ns = sample.latency_sum_ns.wrapping_add(sum_ns);
        for (sum, counter) in sample.latency.iter_mut().zip(&self.latency) {
            let count = counter.load(Ordering::Relaxed);
            *sum += count;
            sample.operations += count;
        }
    }
}

/// A thread that wakes so much too late has stood still; a busy host delays it by less. In nanoseconds.
const STILL_NS: u64 = 1_000_000_000;

/// Looks of a thread that waits for a short time between each and the next.
#[derive(Debug)]
pub(crate) struct Stillness {
    looked_ns: u64,
    times: u32,
    total_ns: u64,
}

impl Stillness {
    /// From now on.
    pub(crate) fn since(now_ns: u64) -> Self {
        Self { looked_ns: now_ns, times: 0, total_ns: 0 }
    }

    /// The thread looks again.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(self.looked_ns);
        if gap_ns > STILL_NS {
            self.times += 1;
            self.total_ns = self.total_ns.saturating_add(gap_ns);
        }
        self.looked_ns = now_ns;
    }

    /// What a reader of the figures should know; nothing where it never stood still.
    pub(crate) fn note(&self) -> Option<String> {
        let times = match self.times {
            0 => return None,
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let tenths_ns = self.total_ns / 100_000_000 * 100_000_000;
        Some(format!(
            "the load generator itself stood still for {} ({times}): it was stopped, or its machine was. Latencies and rates of that \
             time say nothing about the target",
            format_duration_ns(tenths_ns)
        ))
    }
}

/// CPU time of the calling thread from the begin of measuring.
pub(crate) struct CpuMeter {
    begin_ns: u64,
    at_begin: Option<[u64; 2]>,
}

impl CpuMeter {
    /// A meter that starts when the clock first shows `begin_ns` or later.
    pub(crate) fn new(begin_ns: u64) -> Self {
        Self { begin_ns, at_begin: None }
    }

    /// Lets the meter see the clock.
    #[inline]
    pub(crate) fn look(&mut self, now_ns: u64) {
        if self.at_begin.is_none() && now_ns >= self.begin_ns {
            self.at_begin = Some(thread_cpu_ns());
        }
    }

    /// User and system time since then, in nanoseconds.
    pub(crate) fn used(&self) -> [u64; 2] {
        let now = thread_cpu_ns();
        self.at_begin.map_or([0, 0], |then| [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_by_powers_of_two() {
        let counters = LiveCounters::default();
        for latency_ns in [0, 1, 2, 1023, 1024, u64::MAX] {
            counters.success(512, latency_ns);
        }
        counters.failure();
        let mut sample = LiveSample::default();
        counters.add_to(&mut sample);
        counters.add_to(&mut sample);
        let busy: Vec<_> = (0..LIVE_BUCKETS).filter(|k| sample.latency[*k] > 0).collect();
        assert_eq!(busy, [0, 1, 9, 10, 39]);
        assert_eq!((sample.operations, sample.bytes, sample.errors, sample.latency[0]), (12, 6144, 2, 4));
        let mut half = LiveSample::default();
        counters.add_to(&mut half);
        assert_eq!(sample.since(&half), half);
    }

    #[test]
    fn late_looks_are_added_up_and_short_delays_are_none() {
        let mut still = Stillness::since(0);
        for now_ns in [50_000_000, 900_000_000, 1_800_000_000] {
            still.look(now_ns);
        }
        assert_eq!(still.note(), None);
        still.look(4_000_000_000);
        assert!(still.note().unwrap().contains("stood still for 2s 200ms (once)"), "{:?}", still.note());
        still.look(7_000_000_000);
        assert!(still.note().unwrap().contains("5s 200ms (2 times)"), "{:?}", still.note());
    }
}
