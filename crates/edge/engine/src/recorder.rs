//! What one worker saw.

use std::collections::BTreeMap;

use virtbench_record::{DirectionStats, Interval};
use virtbench_units::{LatencyRecorder, LatencySummary};
use virtbench_workload::Direction;

/// The most intervals a series keeps: over a day of seconds.
pub(crate) const MAX_INTERVALS: usize = 100_000;

/// Stands among the error numbers for an operation that took longer than `--timeout`.
const STALLED: i32 = -1;

/// Counts of one interval, before it becomes an [`Interval`].
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    operations: u64,
    bytes: u64,
    latency_ns: u64,
}

/// Latencies and bytes of one direction.
#[derive(Debug, Default)]
struct Lane {
    latency: LatencyRecorder,
    bytes: u64,
}

/// Records the operations that complete while measuring: after ramp-up, before the end.
#[derive(Debug)]
pub(crate) struct Recorder {
    begin_ns: u64,
    end_ns: u64,
    interval_ns: u64,
    /// By direction: read, write, trim, flush.
    lanes: [Lane; 4],
    /// From the real start, in an open loop.
    service: LatencyRecorder,
    intervals: Vec<Tally>,
    interval_index: usize,
    interval_end_ns: u64,
    errors: BTreeMap<i32, u64>,
}

impl Recorder {
    /// A recorder of what completes from `begin_ns` until before `end_ns` of the clock.
    pub(crate) fn new(begin_ns: u64, end_ns: u64, interval_ns: u64) -> Self {
        let count = usize::try_from((end_ns - begin_ns).div_ceil(interval_ns)).unwrap_or(MAX_INTERVALS);
        Self {
            begin_ns,
            end_ns,
            interval_ns,
            lanes: Default::default(),
            service: LatencyRecorder::new(),
            intervals: vec![Tally::default(); count.clamp(1, MAX_INTERVALS)],
            interval_index: 0,
            interval_end_ns: begin_ns + interval_ns,
            errors: BTreeMap::new(),
        }
    }

    /// Whether a completion at this time counts.
    #[inline]
    pub(crate) fn counts(&self, now_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&now_ns)
    }

    /// Records an operation that completed now.
    #[inline]
    pub(crate) fn success(&mut self, now_ns: u64, direction: Direction, bytes: u32, latency_ns: u64) {
        if !self.counts(now_ns) {
            return;
        }
        let lane = &mut self.lanes[direction as usize];
        lane.latency.record(latency_ns);
        lane.bytes += u64::from(bytes);
        if !direction.moves_data() {
            return;
        }
        if now_ns >= self.interval_end_ns {
            self.advance(now_ns);
        }
        let tally = &mut self.intervals[self.interval_index];
        tally.operations += 1;
        tally.bytes += u64::from(bytes);
        tally.latency_ns += latency_ns;
    }

    /// Records an operation that failed with `errno`, or moved too few bytes (0).
    #[cold]
    pub(crate) fn failure(&mut self, now_ns: u64, errno: i32) {
        if self.counts(now_ns) {
            *self.errors.entry(errno).or_default() += 1;
        }
    }

    /// Records how long an operation took from its real start, where that is not the intended one.
    #[inline]
    pub(crate) fn service(&mut self, now_ns: u64, service_ns: u64) {
        if self.counts(now_ns) {
            self.service.record(service_ns);
        }
    }

    /// Records operations that never completed, whenever that was found out.
    #[cold]
    pub(crate) fn stalled(&mut self, operations: usize) {
        if operations > 0 {
            *self.errors.entry(STALLED).or_default() += operations as u64;
        }
    }

    #[cold]
    fn advance(&mut self, now_ns: u64) {
        let index = usize::try_from((now_ns - self.begin_ns) / self.interval_ns).unwrap_or(usize::MAX);
        self.interval_index = index.min(self.intervals.len() - 1);
        self.interval_end_ns = self.begin_ns + (self.interval_index as u64 + 1) * self.interval_ns;
        if self.interval_index + 1 == self.intervals.len() {
            self.interval_end_ns = u64::MAX;
        }
    }

    /// Adds what another worker saw in the same time.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        for (lane, others) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.latency.merge(&others.latency);
            lane.bytes += others.bytes;
        }
        for (tally, others) in self.intervals.iter_mut().zip(&other.intervals) {
            tally.operations += others.operations;
            tally.bytes += others.bytes;
            tally.latency_ns += others.latency_ns;
        }
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }

    /// Total (reads and writes), reads, writes, trims and flushes over `elapsed_ns`.
    pub(crate) fn stats(&self, elapsed_ns: u64) -> [DirectionStats; 5] {
        let [read, write, trim, flush] = &self.lanes;
        let mut all = read.latency.clone();
        all.merge(&write.latency);
        let of = |lane: &Lane| stats(&lane.latency, lane.bytes, elapsed_ns);
        [stats(&all, read.bytes + write.bytes, elapsed_ns), of(read), of(write), of(trim), of(flush)]
    }

    /// Service times, as a summary and as an encoded histogram.
    pub(crate) fn service_times(&self) -> (Option<LatencySummary>, Option<String>) {
        let histogram = self.service.encode_histogram().ok().filter(|_| self.service.count() > 0);
        (self.service.summary(), histogram)
    }

    /// The series up to `elapsed_ns`.
    pub(crate) fn series(&self, elapsed_ns: u64) -> Vec<Interval> {
        (0u64..)
            .map(|index| index * self.interval_ns)
            .zip(&self.intervals)
            .take_while(|(start_ns, _)| *start_ns < elapsed_ns)
            .map(|(start_ns, tally)| Interval {
                start_ns,
                length_ns: self.interval_ns.min(elapsed_ns - start_ns),
                operations: tally.operations,
                bytes: tally.bytes,
                mean_latency_ns: (tally.operations > 0)
                    .then(|| tally.latency_ns as f64 / tally.operations as f64),
            })
            .collect()
    }

    /// Failed operations by the name of their error.
    pub(crate) fn error_kinds(&self) -> BTreeMap<String, u64> {
        self.errors.iter().map(|(errno, count)| (error_name(*errno), *count)).collect()
    }
}

/// The name of an error number, for people.
pub(crate) fn error_name(errno: i32) -> String {
    match errno {
        0 => "short transfer".into(),
        STALLED => "no completion within --timeout".into(),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}

fn stats(latency: &LatencyRecorder, bytes: u64, elapsed_ns: u64) -> DirectionStats {
    let seconds = elapsed_ns.max(1) as f64 / 1e9;
    let operations = latency.count();
    DirectionStats {
        operations,
        bytes,
        iops: operations as f64 / seconds,
        bytes_per_second: bytes as f64 / seconds,
        latency_ns: latency.summary(),
        histogram: latency.encode_histogram().ok().filter(|_| operations > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_measuring_time_counts() {
        let mut recorder = Recorder::new(1_000, 2_000, 400);
        for now_ns in [999, 1_000, 1_399, 1_400, 1_999, 2_000] {
            recorder.success(now_ns, Direction::Read, 512, 10);
        }
        recorder.failure(500, libc::EIO);
        recorder.failure(1_500, libc::EIO);
        let [total, read, write, ..] = recorder.stats(1_000);
        assert_eq!((total.operations, read.operations, write.operations), (4, 4, 0));
        assert_eq!(write.latency_ns, None);
        assert_eq!(recorder.error_kinds().values().sum::<u64>(), 1);
        let series = recorder.series(1_000);
        assert_eq!(series.iter().map(|i| i.operations).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(series[2].length_ns, 200);
    }

    #[test]
    fn workers_add_up() {
        let mut one = Recorder::new(0, 100, 100);
        let mut two = Recorder::new(0, 100, 100);
        one.success(5, Direction::Read, 512, 10);
        two.success(7, Direction::Write, 1024, 30);
        two.failure(8, 0);
        one.merge(&two);
        let [total, ..] = one.stats(100);
        assert_eq!((total.operations, total.bytes), (2, 1536));
        assert_eq!(one.error_kinds(), BTreeMap::from([("short transfer".to_owned(), 1)]));
        assert_eq!(one.series(100)[0].mean_latency_ns, Some(20.0));
    }
}
