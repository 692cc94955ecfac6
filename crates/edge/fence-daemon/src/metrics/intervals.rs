//! How steady a disk has been so far, in seconds of its own.
//!
//! [VirtualFence 2013]'s deviation (section 4.1) is that of performance beside others from performance alone. A disk that is being
//! served has no run alone beside it, so that two things are told apart. How far its seconds differ among each other,
//! which needs no other run: the coefficient of variation, and the range over the mean. And, where the configuration says
//! what the disk has alone, the paper's deviation of the mean from that.
//!
//! Seconds in which nothing was asked count for nothing. A second lasts until the first look after it; what is looked at
//! is dated to within the time between looks. The last second of a load has no rate: it ended somewhere within.

use std::collections::VecDeque;

use virtbench_fence::Time;
use virtbench_model::deviation_percent;

/// The shortest interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Intervals that are kept: the last minute of work.
const KEPT: usize = 60;

/// What a disk has alone, as measured or promised.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Alone {
    /// Requests a second.
    pub iops: Option<f64>,
    /// Mean response time in seconds.
    pub response_s: Option<f64>,
}

/// What is known of a disk at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) requests: u64,
    pub(super) response_ns: u64,
    pub(super) under_way: u64,
}

/// How steady one quantity has been.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Steadiness {
    /// Intervals that it rests on.
    pub(super) intervals: u64,
    /// Standard deviation over mean.
    pub(super) variation: Option<f64>,
    /// Greatest less least, over the mean.
    pub(super) spread: Option<f64>,
    /// From what it is alone ([VirtualFence 2013], section 4.1).
    pub(super) deviation: Option<f64>,
}

/// Throughput and response time, over the last minute of work and over all of it.
pub(super) type SoFar = [[Steadiness; 2]; 2];

/// Of numbers that are not kept (Welford's method; Chan's for several at once).
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
    least: f64,
    greatest: f64,
}

impl Spread {
    fn add(&mut self, value: f64, times: u64) {
        let (before, times) = (self.count, times as f64);
        let from_mean = value - self.mean;
        self.count += times;
        self.mean += from_mean * times / self.count;
        self.squares += from_mean * from_mean * before * times / self.count;
        self.least = if before > 0.0 { self.least.min(value) } else { value };
        self.greatest = if before > 0.0 { self.greatest.max(value) } else { value };
    }

    /// `mean` is that of requests, which weighs intervals by what was in them.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counted in whole numbers
    fn steadiness(&self, mean: Option<f64>, alone: Option<f64>) -> Steadiness {
        let over_mean = |value: f64| (self.count > 1.0 && self.mean > 0.0).then(|| value / self.mean);
        let deviates = |(alone, mean)| Some(deviation_percent(alone, mean)? / 100.0);
        Steadiness {
            intervals: self.count as u64,
            variation: over_mean((self.squares / (self.count - 1.0).max(1.0)).sqrt()),
            spread: over_mean(self.greatest - self.least),
            deviation: alone.zip(mean).and_then(deviates),
        }
    }
}

/// Of intervals.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rate: Spread,
    response: Spread,
    requests: u64,
    response_ns: u64,
}

impl Sums {
    fn add(&mut self, second: Second) {
        if let Some(rate) = second.rate {
            self.rate.add(rate, second.times);
        }
        if second.requests > 0 {
            self.response.add(second.response_ns as f64 / second.requests as f64 / 1e9, 1);
            self.requests += second.requests;
            self.response_ns = self.response_ns.saturating_add(second.response_ns);
        }
    }

    fn steadiness(&self, alone: Alone) -> [Steadiness; 2] {
        let rate = (self.rate.count > 0.0).then_some(self.rate.mean);
        let response = (self.requests > 0).then(|| self.response_ns as f64 / self.requests as f64 / 1e9);
        [self.rate.steadiness(rate, alone.iops), self.response.steadiness(response, alone.response_s)]
    }
}

/// What was answered in an interval, or in several alike.
#[derive(Debug, Clone, Copy)]
struct Second {
    /// Requests a second; none of the end of a load.
    rate: Option<f64>,
    requests: u64,
    response_ns: u64,
    times: u64,
}

/// The intervals of one disk.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    alone: Alone,
    /// The current interval: since when, and what was known then. None while nothing is asked.
    opened: Option<(Time, Seen)>,
    /// Something was asked in it.
    active: bool,
    /// Over, and not yet known to be or not to be the last of a load.
    pending: Option<Second>,
    looked: (Time, Seen),
    kept: VecDeque<Second>,
    all: Sums,
}

impl Intervals {
    pub(super) fn new(alone: Alone) -> Self {
        Self { alone, kept: VecDeque::with_capacity(KEPT), ..Self::default() }
    }

    /// How the disk stands now. True if an interval was counted.
    pub(super) fn look(&mut self, now: Time, seen: Seen) -> bool {
        let (before_at, before) = std::mem::replace(&mut self.looked, (now, seen));
        let asked = seen.under_way > 0 || seen.requests != before.requests;
        let Some((opened, at_open)) = self.opened else {
            if asked {
                self.opened = Some((before_at, before));
                self.active = true;
            }
            return false;
        };
        self.active |= asked;
        let elapsed_ns = now.since(opened);
        if elapsed_ns < INTERVAL_NS {
            return false;
        }
        if !self.active {
            self.opened = None;
            return self.count(None);
        }
        self.opened = Some((now, seen));
        self.active = seen.under_way > 0;
        let whole = elapsed_ns / INTERVAL_NS;
        let length_ns = if whole > 1 { INTERVAL_NS } else { elapsed_ns };
        let requests = seen.requests - at_open.requests;
        let second = Second {
            rate: Some(requests as f64 * 1e9 / length_ns as f64),
            requests,
            response_ns: seen.response_ns.wrapping_sub(at_open.response_ns),
            times: 1,
        };
        self.count(Some(second));
        if whole > 1 && before.under_way > 0 {
            // No sample was taken because nothing happened, though requests were in flight.
            self.count(Some(Second { rate: Some(0.0), requests: 0, response_ns: 0, times: whole - 1 }));
        } else if whole > 1 {
            self.opened = None;
            self.count(None);
        }
        true
    }

    /// The pending interval is counted, with its rate if another follows.
    fn count(&mut self, next: Option<Second>) -> bool {
        let Some(mut second) = std::mem::replace(&mut self.pending, next) else { return false };
        if next.is_none() {
            second.rate = None;
        }
        self.all.add(second);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(second);
        true
    }

    /// How steady it has been in the last minute of work, and in all.
    pub(super) fn so_far(&self) -> SoFar {
        let mut minute = Sums::default();
        for second in &self.kept {
            minute.add(*second);
        }
        [minute.steadiness(self.alone), self.all.steadiness(self.alone)]
    }
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
