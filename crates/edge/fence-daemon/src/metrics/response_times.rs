//! Response times of one disk and one kind of request in a histogram of fixed size.
//!
//! Buckets are log-linear: each power of two has [`STEPS`] of the same width, so that a quantile is within 1.6 %. A count
//! adds one to one bucket; quantiles are found by the reader. `hdrhistogram` has such buckets too, but either
//! they cannot be read while they are written, or recording goes through its queues.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use virtbench_fence::Time;

/// Buckets for each power of two, and its logarithm.
const STEPS: usize = 1 << STEPS_LOG2;

const STEPS_LOG2: u32 = 5;

/// What takes longer, 137 s, is counted as that.
const LONGEST_LOG2: u32 = 37;

const BUCKETS: usize = STEPS * (LONGEST_LOG2 - STEPS_LOG2 + 1) as usize;

/// The last minute of work is known in parts of this length.
const PART_NS: u64 = 10_000_000_000;

const PARTS: usize = 6;

/// Quantiles that are shown.
pub(super) const QUANTILES: [f64; 2] = [0.5, 0.99];

#[inline]
#[allow(clippy::cast_possible_truncation)] // less than 2^LONGEST_LOG2, on 64 bits
const fn bucket(ns: u64) -> usize {
    let longest = (1 << LONGEST_LOG2) - 1;
    let ns = if ns < longest { ns } else { longest };
    let shift = (ns | 1).ilog2().saturating_sub(STEPS_LOG2);
    STEPS * shift as usize + (ns >> shift) as usize
}

/// The middle of a bucket, in nanoseconds.
const fn middle_ns(bucket: usize) -> f64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let first = (bucket - STEPS * shift) as u64;
    if shift == 0 { first as f64 } else { (first << shift) as f64 + (1u64 << shift) as f64 / 2.0 }
}

/// The response times of a disk.
#[derive(Debug)]
pub(super) struct ResponseTimes {
    counts: Box<[Count]>,
    /// The counts as they were at most a minute of work ago, and since then in steps; the oldest first.
    before: Mutex<VecDeque<Box<[u64]>>>,
}

impl Default for ResponseTimes {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| Count::default()).collect();
        Self { counts, before: Mutex::new(VecDeque::with_capacity(PARTS)) }
    }
}

impl ResponseTimes {
    /// A request was answered.
    #[inline]
    pub(super) fn record(&self, ns: u64) {
        self.counts[bucket(ns)].add(1);
    }

    /// Begins another part of the minute. False if a reader is in the way: then not now.
    fn part(&self) -> bool {
        let Ok(mut before) = self.before.try_lock() else { return false };
        let oldest = if before.len() == PARTS { before.pop_front() } else { None };
        let mut kept = oldest.unwrap_or_else(|| vec![0; BUCKETS].into());
        kept.iter_mut().zip(&self.counts).for_each(|(kept, count)| *kept = count.get());
        before.push_back(kept);
        true
    }

    /// [`QUANTILES`] in nanoseconds, over the last minute of work and over all; none where nothing was answered.
    pub(super) fn so_far(&self) -> [Option<[f64; QUANTILES.len()]>; 2] {
        let now: Vec<u64> = self.counts.iter().map(Count::get).collect();
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = before
            .front()
            .filter(|_| before.len() == PARTS)
            .map(|before| now.iter().zip(before).map(|(now, before)| now - before).collect::<Vec<u64>>());
        drop(before);
        [minute.as_ref().unwrap_or(&now), &now].map(|counts| quantiles(counts))
    }
}

fn quantiles(counts: &[u64]) -> Option<[f64; QUANTILES.len()]> {
    let all: u64 = counts.iter().sum();
    let at = |quantile: f64| {
        let mut left = (quantile * all as f64).ceil().max(1.0);
        let is_it = |count: &u64| {
            left -= *count as f64;
            left <= 0.0
        };
        middle_ns(counts.iter().position(is_it).unwrap_or(BUCKETS - 1))
    };
    (all > 0).then(|| QUANTILES.map(at))
}

/// When the parts of a disk's minute began. A minute is one of work: without requests no part ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    began: Time,
    requests: u64,
}

impl Parts {
    /// How the disk stands: so many requests have been answered in all.
    pub(super) fn look<'a>(
        &mut self,
        now: Time,
        requests: u64,
        kinds: impl IntoIterator<Item = &'a ResponseTimes>,
    ) {
        let is_over = now.since(self.began) >= PART_NS && requests != self.requests;
        // Every kind is asked: a part that one of them misses is a longer one there.
        if is_over && kinds.into_iter().fold(false, |any, kind| kind.part() | any) {
            *self = Self { began: now, requests };
        }
    }
}

/// One writer, any number of readers: a sum needs no locked instruction.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(super) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "response_times_tests.rs"]
mod tests;
