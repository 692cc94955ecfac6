//! What one worker saw.

use std::collections::BTreeMap;

use virtbench_record::{DirectionStats, InFlightAtEnd, Interval};
use virtbench_units::{LatencyRecorder, LatencySummary};
use virtbench_workload::{Direction, Op};

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

impl Lane {
    /// Once a lane: in line it takes registers from the loop that records.
    #[cold]
    fn boxed() -> Box<Self> {
        Box::default()
    }

    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.bytes += other.bytes;
    }

    fn stats(&self, elapsed_ns: u64) -> DirectionStats {
        let seconds = elapsed_ns.max(1) as f64 / 1e9;
        let operations = self.latency.count();
        DirectionStats {
            operations,
            bytes: self.bytes,
            iops: operations as f64 / seconds,
            bytes_per_second: self.bytes as f64 / seconds,
            latency_ns: self.latency.summary(),
            histogram: self.latency.encode_histogram().ok().filter(|_| operations > 0),
        }
    }
}

/// Records the operations that complete while measuring: after ramp-up, before the end.
#[derive(Debug)]
pub(crate) struct Recorder {
    begin_ns: u64,
    end_ns: u64,
    interval_ns: u64,
    /// By line of the mix and direction, made when the first operation completes: a lane takes a quarter
    /// of a mebibyte.
    lanes: Vec<[Option<Box<Lane>>; 4]>,
    /// From the real start, in an open loop.
    service: LatencyRecorder,
    intervals: Vec<Tally>,
    interval_index: usize,
    interval_end_ns: u64,
    errors: BTreeMap<i32, u64>,
    unfinished: Unfinished,
}

impl Recorder {
    /// A recorder of what completes from `begin_ns` until before `end_ns` of the clock, of a mix of so
    /// many lines.
    pub(crate) fn new(begin_ns: u64, end_ns: u64, interval_ns: u64, lines: usize) -> Self {
        let count = usize::try_from((end_ns - begin_ns).div_ceil(interval_ns)).unwrap_or(MAX_INTERVALS);
        Self {
            begin_ns,
            end_ns,
            interval_ns,
            lanes: (0..lines.max(1)).map(|_| Default::default()).collect(),
            service: LatencyRecorder::new(),
            intervals: vec![Tally::default(); count.clamp(1, MAX_INTERVALS)],
            interval_index: 0,
            interval_end_ns: begin_ns + interval_ns,
            errors: BTreeMap::new(),
            unfinished: Unfinished::default(),
        }
    }

    /// Ends measuring at this moment, if it has not ended before; returns when it ended, and whether that
    /// was before its time. What completes from then on was in flight.
    pub(crate) fn end_at(&mut self, stopped_ns: u64) -> (u64, bool) {
        let early = stopped_ns < self.end_ns;
        self.end_ns = self.end_ns.min(stopped_ns);
        (self.end_ns, early)
    }

    /// Whether a completion at this time counts.
    #[inline]
    pub(crate) fn counts(&self, now_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&now_ns)
    }

    /// Records an operation that completed now.
    #[inline(always)]
    pub(crate) fn success(&mut self, now_ns: u64, op: Op, latency_ns: u64) {
        if !self.counts(now_ns) {
            return self.outside(now_ns, op.direction, latency_ns, Fate::Completed);
        }
        let bytes = u64::from(op.len);
        let lane = self.lanes[usize::from(op.line)][op.direction as usize].get_or_insert_with(Lane::boxed);
        lane.latency.record(latency_ns);
        lane.bytes += bytes;
        if op.direction == Direction::Flush {
            return;
        }
        if now_ns >= self.interval_end_ns {
            self.advance(now_ns);
        }
        let tally = &mut self.intervals[self.interval_index];
        tally.operations += 1;
        tally.bytes += if op.direction.moves_data() { bytes } else { 0 };
        tally.latency_ns += latency_ns;
    }

    /// Records an operation that failed with `errno`, or moved too few bytes (0). One that was in flight
    /// when measuring ended counts as well: it was part of the load.
    #[cold]
    pub(crate) fn failure(&mut self, now_ns: u64, direction: Direction, errno: i32, latency_ns: u64) {
        if now_ns >= self.begin_ns {
            *self.errors.entry(errno).or_default() += 1;
        }
        if !self.counts(now_ns) {
            self.outside(now_ns, direction, latency_ns, Fate::Failed);
        }
    }

    /// Notes an operation that ended during ramp-up, which is nothing, or after measuring.
    #[cold]
    fn outside(&mut self, now_ns: u64, direction: Direction, latency_ns: u64, fate: Fate) {
        if now_ns >= self.end_ns && self.end_ns > self.begin_ns {
            self.unfinished.in_flight(now_ns - self.end_ns, latency_ns, direction.moves_data(), fate);
        }
    }

    /// Notes operations that were due at these moments and had not started when measuring ended.
    pub(crate) fn unstarted(&mut self, due_ns: impl Iterator<Item = u64>) {
        for due_ns in due_ns.filter(|due_ns| *due_ns >= self.begin_ns) {
            self.unfinished.unstarted(self.end_ns.saturating_sub(due_ns));
        }
    }

    /// Records how long an operation took from its real start, where that is not the intended one.
    #[inline]
    pub(crate) fn service(&mut self, now_ns: u64, service_ns: u64) {
        if self.counts(now_ns) {
            self.service.record(service_ns);
        }
    }

    /// Records an operation that did not complete within the time limit, whenever that was found out.
    #[cold]
    pub(crate) fn stalled(&mut self, now_ns: u64, direction: Direction, waited_ns: u64) {
        *self.errors.entry(STALLED).or_default() += 1;
        self.outside(now_ns, direction, waited_ns, Fate::Failed);
    }

    /// How many operations did not complete within the time limit.
    pub(crate) fn stalls(&self) -> u64 {
        self.errors.get(&STALLED).copied().unwrap_or(0)
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
        self.unfinished.merge(&other.unfinished);
        for (lanes, others) in self.lanes.iter_mut().zip(&other.lanes) {
            for (lane, others) in lanes.iter_mut().zip(others) {
                if let Some(others) = others {
                    lane.get_or_insert_default().merge(others);
                }
            }
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

    /// What was unfinished when measuring ended.
    pub(crate) fn in_flight_at_end(&self) -> InFlightAtEnd {
        self.unfinished.summary(&self.reads_and_writes())
    }

    fn reads_and_writes(&self) -> LatencyRecorder {
        Self::sum(&self.lanes, &[Direction::Read, Direction::Write]).latency
    }

    /// All operations of these directions and lines.
    fn sum(lines: &[[Option<Box<Lane>>; 4]], directions: &[Direction]) -> Lane {
        let mut sum = Lane::default();
        for lanes in lines {
            directions
                .iter()
                .filter_map(|one| lanes[*one as usize].as_ref())
                .for_each(|lane| sum.merge(lane));
        }
        sum
    }

    /// Total (reads, writes and trims; of their bytes those that moved), reads, writes, trims and flushes over
    /// `elapsed_ns`.
    pub(crate) fn stats(&self, elapsed_ns: u64) -> [DirectionStats; 5] {
        use Direction::{Flush, Read, Trim, Write};
        let sides: [&[Direction]; 4] = [&[Read], &[Write], &[Trim], &[Flush]];
        let [read, write, trim, flush] =
            sides.map(|directions| Self::sum(&self.lanes, directions).stats(elapsed_ns));
        let total = DirectionStats {
            bytes: read.bytes + write.bytes,
            bytes_per_second: read.bytes_per_second + write.bytes_per_second,
            ..Self::sum(&self.lanes, &[Read, Write, Trim]).stats(elapsed_ns)
        };
        [total, read, write, trim, flush]
    }

    /// Reads, writes and trims of each line of the mix over `elapsed_ns`; nothing where there is one line.
    pub(crate) fn line_stats(&self, elapsed_ns: u64) -> Vec<DirectionStats> {
        if self.lanes.len() < 2 {
            return Vec::new();
        }
        let all = [Direction::Read, Direction::Write, Direction::Trim];
        let of = |line| DirectionStats {
            histogram: None,
            ..Self::sum(std::slice::from_ref(line), &all).stats(elapsed_ns)
        };
        self.lanes.iter().map(of).collect()
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

/// Fewer overdue operations than this are chance, whatever share of a slow load they are.
const FEW_OVERDUE: u64 = 2;

/// What became of an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It completed after the end.
    Completed,
    /// It failed after the end, or did not complete within the time limit.
    Failed,
}

/// An operation that was in flight when measuring ended.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// How long it had waited by the end, in nanoseconds.
    waited_ns: u64,
    /// How long it took until it completed, failed or was given up, in nanoseconds.
    lasted_ns: u64,
    /// Whether it is a read or a write.
    moves_data: bool,
    fate: Fate,
}

/// What one worker had not finished. Bounded by its outstanding I/Os and its backlog.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    in_flight: Vec<Late>,
    /// How long each operation had waited that was due and never started, in nanoseconds.
    unstarted_ns: Vec<u64>,
}

impl Unfinished {
    /// Notes an operation that ended `after_ns` after the end of measuring and lasted `lasted_ns`.
    pub(crate) fn in_flight(&mut self, after_ns: u64, lasted_ns: u64, moves_data: bool, fate: Fate) {
        let waited_ns = lasted_ns.saturating_sub(after_ns);
        self.in_flight.push(Late { waited_ns, lasted_ns, moves_data, fate });
    }

    /// Notes an operation that was due for so long at the end and had not started.
    pub(crate) fn unstarted(&mut self, waited_ns: u64) {
        self.unstarted_ns.push(waited_ns);
    }

    /// Adds what another worker had not finished.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.in_flight.extend_from_slice(&other.in_flight);
        self.unstarted_ns.extend_from_slice(&other.unstarted_ns);
    }

    /// What it comes to beside the latencies of the reads and writes that completed in time.
    pub(crate) fn summary(&self, in_time: &LatencyRecorder) -> InFlightAtEnd {
        let mut waited = LatencyRecorder::new();
        let mut counted_in = in_time.clone();
        for late in &self.in_flight {
            waited.record(late.waited_ns);
            if late.moves_data {
                counted_in.record(late.lasted_ns);
            }
        }
        self.unstarted_ns.iter().for_each(|waited_ns| counted_in.record(*waited_ns));
        let usual_ns = in_time.summary().map_or(0, |latency| latency.p99);
        let waits = self.in_flight.iter().map(|late| late.waited_ns).chain(self.unstarted_ns.iter().copied());
        let count = |fate| self.in_flight.iter().filter(|late| late.fate == fate).count() as u64;
        InFlightAtEnd {
            operations: self.in_flight.len() as u64,
            waited_ns: waited.summary(),
            completed: count(Fate::Completed),
            failed: count(Fate::Failed),
            overdue: waits.filter(|waited_ns| *waited_ns > usual_ns).count() as u64,
            counted_in_ns: counted_in.summary(),
        }
    }
}

/// Whether so many of the operations offered were overdue at the end that the target had stopped
/// keeping up: more than one in a hundred, which is how many a steady target leaves beyond its 99th
/// percentile.
pub(crate) fn stopped_keeping_up(overdue: u64, offered: u64) -> bool {
    overdue > FEW_OVERDUE.max(offered / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(direction: Direction, len: u32) -> Op {
        Op { direction, offset: 0, len, line: 0 }
    }

    #[test]
    fn only_the_measuring_time_counts() {
        let mut recorder = Recorder::new(1_000, 2_000, 400, 1);
        for now_ns in [999, 1_000, 1_399, 1_400, 1_999, 2_000] {
            recorder.success(now_ns, op(Direction::Read, 512), 10);
        }
        recorder.failure(500, Direction::Read, libc::EIO, 10);
        recorder.failure(1_500, Direction::Read, libc::EIO, 10);
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
        let mut one = Recorder::new(0, 100, 100, 2);
        let mut two = Recorder::new(0, 100, 100, 2);
        one.success(5, op(Direction::Read, 512), 10);
        two.success(7, op(Direction::Write, 1024), 30);
        two.failure(8, Direction::Read, 0, 5);
        one.merge(&two);
        let [total, ..] = one.stats(100);
        assert_eq!((total.operations, total.bytes), (2, 1536));
        assert_eq!(one.error_kinds(), BTreeMap::from([("short transfer".to_owned(), 1)]));
        assert_eq!(one.series(100)[0].mean_latency_ns, Some(20.0));
    }

    #[test]
    fn lines_of_a_mix_are_told_apart_and_one_line_is_the_total() {
        let mut recorder = Recorder::new(0, 100, 100, 2);
        recorder.success(1, op(Direction::Read, 512), 10);
        recorder.success(2, Op { line: 1, ..op(Direction::Write, 1024) }, 30);
        recorder.success(3, Op { line: 1, ..op(Direction::Trim, 4096) }, 50);
        let lines = recorder.line_stats(100);
        assert_eq!(
            lines.iter().map(|line| (line.operations, line.bytes)).collect::<Vec<_>>(),
            [(1, 512), (2, 5120)]
        );
        assert_eq!(lines[1].latency_ns.map(|latency| (latency.min, latency.max)), Some((30, 50)));
        assert!(Recorder::new(0, 100, 100, 1).line_stats(100).is_empty());
    }

    #[test]
    fn what_is_unfinished_counts_in_the_tail_with_what_it_took() {
        let mut in_time = LatencyRecorder::new();
        (0..90).for_each(|_| in_time.record(1_000));
        let mut unfinished = Unfinished::default();
        unfinished.in_flight(400, 900, true, Fate::Completed);
        (0..4).for_each(|_| unfinished.in_flight(5_000, 10_000, true, Fate::Completed));
        unfinished.in_flight(5_000, 20_000, true, Fate::Failed);
        unfinished.in_flight(5_000, 90_000, false, Fate::Completed);
        (0..4).for_each(|_| unfinished.unstarted(30_000));
        let found = unfinished.summary(&in_time);
        assert_eq!((found.operations, found.completed, found.failed, found.overdue), (7, 6, 1, 10));
        let waited = found.waited_ns.unwrap();
        assert_eq!((waited.min, waited.max), (500, 85_000));
        // A flush is no part of the reads' and writes' percentiles.
        let counted_in = found.counted_in_ns.unwrap();
        assert_eq!((counted_in.p90, counted_in.max), (1_000, 30_000));
        assert!((29_900..=30_000).contains(&counted_in.p99), "{counted_in:?}");
    }

    #[test]
    fn a_few_slow_operations_are_no_saturation_and_a_stall_is() {
        assert!(!stopped_keeping_up(2, 10) && stopped_keeping_up(3, 10));
        assert!(!stopped_keeping_up(50, 5_000) && stopped_keeping_up(51, 5_000));
    }
}
