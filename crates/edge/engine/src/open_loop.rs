//! An open loop's queue: operations that are due, whether there is a free slot for them or not.

use std::collections::VecDeque;

use virtbench_workload::ArrivalTimes;

/// The most operations a worker lets wait for a free slot (512 KiB of moments). When another one
/// becomes due, the one that has waited longest is dropped.
pub(crate) const MAX_BACKLOG: usize = 65_536;

/// The result of a worker's open loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenLoopCounts {
    /// Operations due while measuring.
    pub offered: u64,
    /// Operations dropped while measuring.
    pub dropped: u64,
    /// Operations due but not started when the worker stopped.
    pub backlog_end: u64,
    /// The most that were due but not started.
    pub backlog_max: u64,
}

/// The intended starts of one worker's operations.
///
/// They are drawn from the arrival process alone: nothing the target does moves them, so that the
/// time an operation waits for a slot is part of its latency ("coordinated omission" is the name
/// of the mistake of leaving it out).
pub(crate) struct OpenLoop {
    times: ArrivalTimes,
    moments: Moments,
    next_ns: u64,
    due: VecDeque<u64>,
    counts: OpenLoopCounts,
}

impl OpenLoop {
    /// Arrivals from the start of the load on.
    pub(crate) fn new(mut times: ArrivalTimes, moments: Moments) -> Self {
        let next_ns = moments.start_ns + times.next_ns();
        Self { times, moments, next_ns, due: VecDeque::new(), counts: OpenLoopCounts::default() }
    }

    /// Puts everything that is due by now into the queue.
    #[inline]
    pub(crate) fn collect(&mut self, now_ns: u64) {
        // Bounded by the highest rate, 10 a microsecond.
        while self.next_ns <= now_ns && self.next_ns < self.moments.end_ns {
            if self.due.len() >= MAX_BACKLOG {
                self.due.pop_front();
                self.counts.dropped += u64::from(now_ns >= self.moments.begin_ns);
            }
            self.due.push_back(self.next_ns);
            self.counts.offered += u64::from(self.next_ns >= self.moments.begin_ns);
            self.next_ns = self.moments.start_ns + self.times.next_ns();
        }
    }

    /// The intended start of the operation that has waited longest.
    #[inline]
    pub(crate) fn due(&self) -> Option<u64> {
        self.due.front().copied()
    }

    /// That operation has started.
    #[inline]
    pub(crate) fn started(&mut self) {
        self.due.pop_front();
    }

    /// Nothing more is offered, because the worker has done enough: what is due now is not either.
    pub(crate) fn close(&mut self) {
        self.counts.offered = self.counts.offered.saturating_sub(self.due.len() as u64);
        self.due.clear();
        self.moments.end_ns = 0;
    }

    /// Notes how many are left when no more can be started.
    #[inline]
    pub(crate) fn note_backlog(&mut self) {
        self.counts.backlog_max = self.counts.backlog_max.max(self.due.len() as u64);
    }

    /// When the next operation is due.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The result of it by the time the worker stopped; `unstarted` is told when each operation was due
    /// that has not started.
    pub(crate) fn finish(
        mut self,
        stopped_ns: u64,
        unstarted: impl FnOnce(&mut dyn Iterator<Item = u64>),
    ) -> OpenLoopCounts {
        self.collect(stopped_ns.min(self.moments.end_ns));
        unstarted(&mut self.due.iter().copied());
        self.counts.backlog_end = self.due.len() as u64;
        self.note_backlog();
        self.counts
    }
}

/// The moments of a load on the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// Ramp-up begins.
    pub start_ns: u64,
    /// Measuring begins.
    pub begin_ns: u64,
    /// Measuring ends.
    pub end_ns: u64,
}

#[cfg(test)]
mod tests {
    use virtbench_workload::{Arrivals, Rate};

    use super::*;

    fn open_loop(per_second: f64) -> OpenLoop {
        let rate = Rate { per_second, arrivals: Arrivals::Constant };
        let moments = Moments { start_ns: 1_000, begin_ns: 2_000, end_ns: 1_000_000_000 };
        OpenLoop::new(ArrivalTimes::new(rate, 1, 0, 1), moments)
    }

    #[test]
    fn what_is_due_waits_in_order() {
        let mut open = open_loop(1e6);
        open.collect(3_500);
        assert_eq!((open.due(), open.next_ns()), (Some(1_000), 4_000));
        open.started();
        assert_eq!(open.due(), Some(2_000));
        let mut unstarted = Vec::new();
        let counts = open.finish(4_000, |due| unstarted.extend(due));
        assert_eq!(unstarted, [2_000, 3_000, 4_000]);
        // 1000 came before measuring; 2000, 3000 and 4000 are offered, and none of them started.
        assert_eq!((counts.offered, counts.backlog_end, counts.backlog_max, counts.dropped), (3, 3, 3, 0));
    }

    #[test]
    fn the_queue_is_bounded_and_drops_the_oldest() {
        let mut open = open_loop(1e7);
        open.collect(1_000 + 100 * 100_000);
        assert_eq!(open.due.len(), MAX_BACKLOG);
        assert_eq!(open.due(), Some(1_000 + 100 * (100_001 - MAX_BACKLOG as u64)));
        assert_eq!(open.finish(0, |_| ()).dropped, 100_001 - MAX_BACKLOG as u64);
    }
}
