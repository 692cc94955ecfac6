//! Counting what a thread's users complete.

use std::collections::BTreeMap;

use virtbench_record::UsersSecond;
use virtbench_units::LatencyRecorder;

use crate::fault::Fault;
use crate::seconds::{Seconds, percentile};
use crate::window::Window;

/// Different words of faults that are counted each for itself.
const MOST_WORDS: usize = 50;
/// How the others are counted.
const OTHERS: &str = "other faults";

/// A kind of operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfKind {
    /// Response times.
    pub(crate) latency: LatencyRecorder,
    /// Failed operations.
    pub(crate) failed: u64,
}

/// What ended in a second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    failed: u64,
    /// Response times, in microseconds.
    response_us: Vec<u32>,
}

/// What a thread has counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Each kind.
    pub(crate) kinds: Vec<OfKind>,
    /// Failed operations by what went wrong.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Operations that had not ended when measuring did.
    pub(crate) unfinished: u64,
    /// How long the oldest of those had taken, in nanoseconds.
    pub(crate) oldest_ns: u64,
    /// What nobody has taken yet.
    pub(crate) seconds: Seconds<Second>,
}

impl Tally {
    /// Of so many kinds.
    pub(crate) fn new(kinds: usize) -> Self {
        Self { kinds: vec![OfKind::default(); kinds], ..Self::default() }
    }

    /// Counts an operation that ended at `at_ns` as it should, after `took_ns`.
    pub(crate) fn done(&mut self, window: Window, kind: usize, at_ns: u64, took_ns: u64) {
        if window.contains(at_ns) {
            self.kinds[kind].latency.record(took_ns);
            let second = self.seconds.at(window.second(at_ns));
            second.response_us.push(u32::try_from(took_ns / 1_000).unwrap_or(u32::MAX));
        }
    }

    /// Counts an operation that failed.
    pub(crate) fn failed(&mut self, window: Window, kind: usize, at_ns: u64, fault: &Fault) {
        if window.contains(at_ns) {
            self.kinds[kind].failed += 1;
            self.seconds.at(window.second(at_ns)).failed += 1;
            self.count_words(&fault.words, 1);
        }
    }

    /// Counts an operation that has taken `took_ns` when measuring ends.
    pub(crate) fn unfinished(&mut self, took_ns: u64) {
        self.unfinished += 1;
        self.oldest_ns = self.oldest_ns.max(took_ns);
    }

    fn count_words(&mut self, words: &str, count: u64) {
        let is_known = self.errors.contains_key(words) || self.errors.len() < MOST_WORDS;
        let words = if is_known { words } else { OTHERS };
        *self.errors.entry(words.to_owned()).or_insert(0) += count;
    }

    /// Adds what another thread has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.latency.merge(&theirs.latency);
            mine.failed += theirs.failed;
        }
        other.errors.iter().for_each(|(words, count)| self.count_words(words, *count));
        self.unfinished += other.unfinished;
        self.oldest_ns = self.oldest_ns.max(other.oldest_ns);
    }
}

/// Second number `number` of the series, from what each thread has of it.
pub(crate) fn second(number: u64, length_ns: u64, parts: impl IntoIterator<Item = Second>) -> UsersSecond {
    let mut all = Second::default();
    for part in parts {
        all.failed += part.failed;
        all.response_us.extend(part.response_us);
    }
    UsersSecond {
        start_ns: number * 1_000_000_000,
        length_ns,
        completed: all.response_us.len() as u64,
        failed: all.failed,
        p95_ns: percentile(&mut all.response_us, 95).map(|us| u64::from(us) * 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;

    const WINDOW: Window = Window { start_ns: 5_000_000_000, end_ns: 8_000_000_000 };

    #[test]
    fn what_users_complete_outside_the_window_does_not_count() {
        let (mut one, mut other) = (Tally::new(2), Tally::new(2));
        let fault = Fault::new(FaultKind::Refused, "HTTP 500");
        for at_ns in [4_999_999_999, 5_000_000_000, 7_999_999_999, 8_000_000_000] {
            one.done(WINDOW, 0, at_ns, 1_000_000);
            other.failed(WINDOW, 1, at_ns, &fault);
        }
        other.unfinished(7);
        one.merge(&other);
        let counted: Vec<(u64, u64)> =
            one.kinds.iter().map(|kind| (kind.latency.count(), kind.failed)).collect();
        assert_eq!((counted, one.unfinished, one.oldest_ns), (vec![(2, 0), (0, 2)], 1, 7));
        assert_eq!(one.errors, BTreeMap::from([("HTTP 500".to_owned(), 2)]));
        let parts = [&mut one, &mut other].map(|tally| tally.seconds.take(1).remove(&0).unwrap());
        let first = second(0, 1_000_000_000, parts);
        assert_eq!((first.completed, first.failed, first.p95_ns), (1, 1, Some(1_000_000)));
        assert_eq!(second(1, 5, []).p95_ns, None);
    }

    #[test]
    fn faults_of_many_words_do_not_fill_the_memory() {
        let mut tally = Tally::new(1);
        for number in 0..1_000 {
            let fault = Fault::new(FaultKind::Refused, format!("fault {}", number % 100));
            tally.failed(WINDOW, 0, WINDOW.start_ns, &fault);
        }
        assert_eq!((tally.errors.len(), tally.errors[OTHERS]), (MOST_WORDS + 1, 500));
        assert_eq!(tally.errors.values().sum::<u64>(), 1_000);
    }
}
