//! Loads that keep the numbers of their operations in proportion while they run beside one another
//! (fio's `flow`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a worker that is ahead waits before it looks again, in nanoseconds.
const LOOK_NS: u64 = 20_000;

/// What the loads of one flow have started, and the sum of their weights.
#[derive(Debug, Default)]
pub struct FlowGroup {
    operations: AtomicU64,
    weight: AtomicU64,
    /// What of the weight belongs to workers that have yet to join.
    expected: AtomicU64,
}

impl FlowGroup {
    /// Counts workers of this weight together before they join, so that those that join first wait for them.
    pub fn expect(&self, weight: u64) {
        self.expected.fetch_add(weight, Ordering::Relaxed);
        self.weight.fetch_add(weight, Ordering::Relaxed);
    }
}

/// A load's part in a flow: each of its workers has this weight.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Those that it runs beside.
    pub group: Arc<FlowGroup>,
    /// Its share among the weights of all, from 1.
    pub weight: u32,
    /// How long a worker that is ahead sleeps once nothing of its is in flight, in nanoseconds; 0 where it
    /// only starts nothing until the others have caught up.
    pub sleep_ns: u64,
}

/// One worker's part. Its operations and its weight leave the flow with it.
#[derive(Debug)]
pub(crate) struct FlowShare {
    flow: Flow,
    started: u64,
    draining: bool,
}

impl FlowShare {
    /// A worker that joins.
    pub(crate) fn join(flow: Flow) -> Self {
        let weight = u64::from(flow.weight);
        let take = |expected: u64| expected.checked_sub(weight);
        let was_expected = flow.group.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if was_expected.is_err() {
            flow.group.weight.fetch_add(weight, Ordering::Relaxed);
        }
        Self { flow, started: 0, draining: false }
    }

    /// When to look again, if the worker is further than its share allows and so may start nothing now;
    /// `idle` says whether it has nothing in flight.
    pub(crate) fn held_until(&mut self, now_ns: u64, idle: bool) -> Option<u64> {
        if self.draining {
            if !idle {
                return Some(now_ns + LOOK_NS);
            }
            self.draining = false;
            return Some(now_ns + self.flow.sleep_ns);
        }
        let total = 1 + self.flow.group.operations.load(Ordering::Relaxed);
        let weight = self.flow.group.weight.load(Ordering::Relaxed);
        let is_ahead =
            u128::from(self.started) * u128::from(weight) > u128::from(self.flow.weight) * u128::from(total);
        if !is_ahead {
            return None;
        }
        self.draining = self.flow.sleep_ns > 0;
        Some(now_ns + LOOK_NS)
    }

    /// Counts an operation that was started.
    pub(crate) fn started(&mut self) {
        self.flow.group.operations.fetch_add(1, Ordering::Relaxed);
        self.started += 1;
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.flow.group.operations.fetch_sub(self.started, Ordering::Relaxed);
        self.flow.group.weight.fetch_sub(self.flow.weight.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: [u32; 2], sleep_ns: u64) -> [FlowShare; 2] {
        let group = Arc::<FlowGroup>::default();
        weights.map(|weight| FlowShare::join(Flow { group: Arc::clone(&group), weight, sleep_ns }))
    }

    #[test]
    fn operations_keep_to_the_weights_and_nobody_waits_for_one_that_has_gone() {
        let [mut one, mut eight] = shares([1, 8], 0);
        for _ in 0..9_000 {
            for share in [&mut one, &mut eight] {
                if share.held_until(0, true).is_none() {
                    share.started();
                }
            }
        }
        assert!(one.started.abs_diff(eight.started / 8) <= 1, "{} and {}", one.started, eight.started);
        assert!(eight.started >= 8_999, "{}", eight.started);
        while one.held_until(0, true).is_none() {
            one.started();
        }
        drop(eight);
        for _ in 0..100 {
            assert_eq!(one.held_until(0, true), None);
            one.started();
        }
    }

    #[test]
    fn a_worker_waits_for_one_that_is_expected() {
        let group = Arc::<FlowGroup>::default();
        group.expect(5);
        let join = |weight| FlowShare::join(Flow { group: Arc::clone(&group), weight, sleep_ns: 0 });
        let mut one = join(1);
        for _ in 0..100 {
            if one.held_until(0, true).is_none() {
                one.started();
            }
        }
        assert_eq!(one.started, 1, "the other has yet to join");
        let mut four = join(4);
        for _ in 0..1_000 {
            for share in [&mut four, &mut one] {
                if share.held_until(0, true).is_none() {
                    share.started();
                }
            }
        }
        assert!(one.started.abs_diff(four.started / 4) <= 1, "{} and {}", one.started, four.started);
        drop((one, four));
        assert_eq!(group.weight.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_worker_that_is_ahead_sleeps_once_nothing_is_in_flight() {
        let [mut one, _other] = shares([1, 1], 1_000_000);
        assert_eq!(one.held_until(0, true), None);
        one.started();
        one.started();
        assert_eq!(one.held_until(5, false), Some(5 + LOOK_NS));
        assert_eq!(one.held_until(6, false), Some(6 + LOOK_NS));
        assert_eq!(one.held_until(7, true), Some(1_000_007));
    }
}
