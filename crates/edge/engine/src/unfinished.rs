//! Operations that the end of measuring found unfinished: in flight, or due and not started.

use virtbench_record::InFlightAtEnd;
use virtbench_units::LatencyRecorder;

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
