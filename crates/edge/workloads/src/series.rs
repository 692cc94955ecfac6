//! The series: what is counted, interval by interval.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use virtbench_engine::monotonic_ns;
use virtbench_record::Interval;

/// The most intervals; what does not fit makes the last one longer.
const MAX_INTERVALS: usize = 20_000;

/// Reads the counters at the end of each interval until `over` says so. Intervals count from
/// `origin_ns`; the first begins with what the counters were when. A reader that comes late, as a guest without its
/// processor does, writes down how late.
pub(crate) fn record(
    counters: [&AtomicU64; 2],
    (mut before, mut begun_ns): ([u64; 2], u64),
    origin_ns: u64,
    interval_ns: u64,
    over: &Receiver<()>,
) -> Vec<Interval> {
    let read = || counters.map(|counter| counter.load(Ordering::Relaxed));
    let mut intervals = Vec::new();
    loop {
        // On the common grid, so that the intervals of several machines meet.
        let past = begun_ns.saturating_sub(origin_ns);
        let end_ns = origin_ns + (past / interval_ns + 1) * interval_ns;
        let wait = if intervals.len() + 1 < MAX_INTERVALS {
            Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()))
        } else {
            Duration::MAX
        };
        let last = match over.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => false,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        };
        let (now_ns, now) = (monotonic_ns(), read());
        if now_ns > begun_ns && (!last || now != before || intervals.is_empty()) {
            intervals.push(Interval {
                start_ns: begun_ns.saturating_sub(origin_ns),
                length_ns: now_ns - begun_ns,
                operations: now[0] - before[0],
                bytes: now[1] - before[1],
                mean_latency_ns: None,
            });
        }
        if last {
            return intervals;
        }
        (before, begun_ns) = (now, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn intervals_follow_one_another_and_lose_nothing() {
        let (operations, bytes) = (AtomicU64::new(7), AtomicU64::new(0));
        let (end, over) = mpsc::channel();
        let origin_ns = monotonic_ns();
        let intervals = thread::scope(|scope| {
            let counters = [&operations, &bytes];
            // The thread begins when it gets a processor: what was counted by then is in the series all the same.
            let begun = ([5, 0], origin_ns);
            let series = scope.spawn(move || record(counters, begun, origin_ns, 5_000_000, &over));
            thread::sleep(Duration::from_millis(12));
            for _ in 0..50 {
                operations.fetch_add(1, Ordering::Relaxed);
                bytes.fetch_add(10, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
            drop(end);
            series.join().unwrap()
        });
        let sum = |of: fn(&Interval) -> u64| intervals.iter().map(of).sum::<u64>();
        assert_eq!((sum(|interval| interval.operations), sum(|interval| interval.bytes)), (52, 500));
        assert!(intervals.len() > 2);
        for pair in intervals.windows(2) {
            assert_eq!(pair[0].start_ns + pair[0].length_ns, pair[1].start_ns);
        }
    }
}
