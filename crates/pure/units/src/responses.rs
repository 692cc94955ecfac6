//! Response times of what was asked for, whether it ended or not, and when operations count.

use crate::latency::{CodecError, LatencyRecorder, LatencySummary};

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Completed,
    /// It failed, which says nothing of how long one would have waited for an answer.
    Failed,
    /// Nobody waited for it any longer: it failed, and would have taken at least as long.
    GivenUp,
}

/// Where an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// It ended in the window.
    Within,
    /// It was due in the window and had not ended by the window's end.
    Unfinished,
    /// Nowhere: it ended before the window, or was not due before its end.
    Outside,
}

/// Response times of one kind of operation. A driver tells it of every operation that was due, and so cannot leave out those that a
/// server did not answer: an operation that was due or in flight at the end stands in every percentile with the time that it had
/// waited when it ended or was given up, which is at least the time until the end.
#[derive(Debug, Clone, Default)]
pub struct Responses {
    times: LatencyRecorder,
    completed: u64,
    failed: u64,
    given_up: u64,
    unfinished: u64,
    oldest_ns: u64,
}

impl Responses {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an operation that was due at `due_ns`: in an open loop at its intended start. It ended at `at_ns` of the same
    /// clock; one that never ended is given up then.
    pub fn ended(&mut self, window: Window, due_ns: u64, at_ns: u64, ending: Ending) -> Counted {
        let took_ns = at_ns.saturating_sub(due_ns);
        if window.contains(at_ns) {
            self.completed += u64::from(ending == Ending::Completed);
            self.failed += u64::from(ending != Ending::Completed);
            self.given_up += u64::from(ending == Ending::GivenUp);
            if ending != Ending::Failed {
                self.times.record(took_ns);
            }
            Counted::Within
        } else if at_ns >= window.end_ns && due_ns < window.end_ns && window.start_ns < window.end_ns {
            self.times.record(took_ns);
            self.unfinished += 1;
            self.oldest_ns = self.oldest_ns.max(window.end_ns - due_ns);
            Counted::Unfinished
        } else {
            Counted::Outside
        }
    }

    /// Counts an operation that was due at `due_ns` and has not begun.
    pub fn never_begun(&mut self, window: Window, due_ns: u64) -> Counted {
        self.ended(window, due_ns, window.end_ns, Ending::GivenUp)
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        self.times.merge(&other.times);
        self.completed += other.completed;
        self.failed += other.failed;
        self.given_up += other.given_up;
        self.unfinished += other.unfinished;
        self.oldest_ns = self.oldest_ns.max(other.oldest_ns);
    }

    /// Operations that ended as they should.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Operations that failed, those that were given up among them.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Operations that failed because they took too long.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Operations that were due or in flight at the end.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// How long the oldest of those had waited at the end, in nanoseconds.
    #[must_use]
    pub fn oldest_ns(&self) -> u64 {
        self.oldest_ns
    }

    /// The statistics of all that completed, were given up or were unfinished; nothing where there was none.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        self.times.summary()
    }

    /// The histogram of the same.
    ///
    /// # Errors
    /// As [`LatencyRecorder::encode_histogram`].
    pub fn encode_histogram(&self) -> Result<String, CodecError> {
        self.times.encode_histogram()
    }

    /// Whether so many percent of all that was due took no longer than a limit; what failed took longer than any. Nothing where
    /// nothing was due.
    #[must_use]
    pub fn keep(&self, percent: u64, limit_ns: u64) -> Option<bool> {
        let due = self.times.count() + self.failed - self.given_up;
        // The histogram's steps are wider than a nanosecond: what is longer by less than a step is within the limit too.
        let within = self.times.histogram().count_between(0, limit_ns);
        (due > 0).then(|| u128::from(within) * 100 >= u128::from(due) * u128::from(percent))
    }
}

/// When operations count: those that end in it, and those that should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Begin, in nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// End; what ends then does not count any more.
    pub end_ns: u64,
}

impl Window {
    /// Whether what ends at this moment counts; in nanoseconds of the monotonic clock.
    #[must_use]
    pub fn contains(self, at_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&at_ns)
    }

    /// Which second of measuring a moment that counts lies in.
    #[must_use]
    pub fn second(self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns) / 1_000_000_000
    }

    /// Which second of measuring is the last.
    #[must_use]
    pub fn last_second(self) -> u64 {
        self.second(self.end_ns.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    const WINDOW: Window = Window { start_ns: 5 * SECOND, end_ns: 15 * SECOND };

    #[test]
    fn what_a_frozen_server_leaves_is_in_every_percentile() {
        let mut responses = Responses::new();
        // A rate of 500 a second, answered for a fifth of a second alone.
        for number in 0..100 {
            let due_ns = WINDOW.start_ns + number * 2_000_000;
            responses.ended(WINDOW, due_ns, due_ns + 7_000_000, Ending::Completed);
        }
        for number in 100..5_000 {
            responses.never_begun(WINDOW, WINDOW.start_ns + number * 2_000_000);
        }
        let summary = responses.summary().unwrap();
        assert!(summary.p50 > 4 * SECOND && summary.p95 > 9 * SECOND, "{summary:?}");
        assert_eq!((responses.completed(), responses.unfinished()), (100, 4_900));
        assert_eq!(responses.oldest_ns(), 9_800_000_000);
        assert_eq!(responses.keep(90, SECOND), Some(false));
    }

    #[test]
    fn operations_count_by_when_they_were_due_and_ended() {
        let mut responses = Responses::new();
        let ns = |tenths: u64| tenths * (SECOND / 10);
        for (due, at, ending, counted) in [
            (40, 49, Ending::Completed, Counted::Outside),
            (40, 50, Ending::Completed, Counted::Within),
            (140, 149, Ending::Failed, Counted::Within),
            (120, 140, Ending::GivenUp, Counted::Within),
            (40, 150, Ending::Completed, Counted::Unfinished),
            (149, 160, Ending::Failed, Counted::Unfinished),
            (150, 160, Ending::Completed, Counted::Outside),
        ] {
            assert_eq!(responses.ended(WINDOW, ns(due), ns(at), ending), counted, "{due} to {at}");
        }
        assert_eq!((responses.completed(), responses.failed(), responses.given_up()), (1, 2, 1));
        assert_eq!((responses.unfinished(), responses.oldest_ns()), (2, 11 * SECOND));
        let summary = responses.summary().unwrap();
        assert_eq!((summary.min, summary.max), (SECOND, 11 * SECOND), "what failed has no response time");
        let mut both = Responses::new();
        both.merge(&responses);
        both.merge(&responses);
        assert_eq!((both.completed(), both.unfinished(), both.oldest_ns()), (2, 4, 11 * SECOND));
    }

    #[test]
    fn failures_are_longer_than_any_limit_and_nothing_keeps_none() {
        let mut responses = Responses::new();
        assert_eq!(responses.keep(90, SECOND), None);
        responses.ended(WINDOW, WINDOW.start_ns, WINDOW.start_ns + 1, Ending::Failed);
        assert_eq!(responses.keep(90, SECOND), Some(false), "all failed");
        for _ in 0..9 {
            responses.ended(WINDOW, WINDOW.start_ns, WINDOW.start_ns + SECOND, Ending::Completed);
        }
        assert_eq!((responses.keep(90, SECOND), responses.keep(91, SECOND)), (Some(true), Some(false)));
    }

    proptest! {
        #[test]
        fn no_operation_that_was_due_is_lost(ends in prop::collection::vec((0_u64..20, 0_u64..20, 0_u8..3), 0..60)) {
            let mut responses = Responses::new();
            let mut due = 0;
            for (begun, took, ending) in ends {
                let ending = [Ending::Completed, Ending::Failed, Ending::GivenUp][usize::from(ending)];
                let (begun, ended) = (begun * SECOND, (begun + took) * SECOND);
                responses.ended(WINDOW, begun, ended, ending);
                due += u64::from(ended >= WINDOW.start_ns && begun < WINDOW.end_ns);
            }
            prop_assert_eq!(responses.completed() + responses.failed() + responses.unfinished(), due);
        }
    }
}
