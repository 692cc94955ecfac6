//! The operations a worker has in flight, where it leaves what it recorded, and how it comes to its end.
//!
//! A blocking call cannot be taken back: a thread whose target never answers is lost until it does.
//! What it recorded need not be, so it lies here meanwhile, and the thread that finds that the call
//! takes too long takes it away and goes on without that one.

use std::sync::{Mutex, PoisonError};

use virtbench_units::format_duration_ns;
use virtbench_workload::{Direction, Op};

use crate::open_loop::OpenLoop;
use crate::recorder::{Recorder, error_name};
use crate::replay::ReplayCounts;

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    /// What it is.
    pub op: Op,
    /// From when its latency counts: the intended start in an open loop.
    pub start_ns: u64,
    /// When it was really handed over.
    pub issued_ns: u64,
}

/// One place for each outstanding operation.
pub(crate) struct Slots {
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
}

impl Slots {
    /// So many places, all free.
    pub(crate) fn new(count: u32) -> Self {
        let op = Op { direction: Direction::Read, offset: 0, len: 0, line: 0 };
        let idle = InFlight { op, start_ns: 0, issued_ns: 0 };
        Self { in_flight: vec![idle; count as usize], free: (0..count).rev().collect() }
    }

    /// Takes a free place, for [`Slots::occupy`] or [`Slots::put_back`].
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives back a place that was taken and not occupied.
    #[inline]
    pub(crate) fn put_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Puts an operation into the place that was taken for it.
    #[inline]
    pub(crate) fn occupy(&mut self, slot: u32, operation: InFlight) {
        self.in_flight[slot as usize] = operation;
    }

    /// The operation in a place, which is free from now on.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) -> InFlight {
        self.free.push(slot);
        self.in_flight[slot as usize]
    }

    /// The operation in a place that is not free.
    #[inline]
    pub(crate) fn at(&self, slot: u32) -> InFlight {
        self.in_flight[slot as usize]
    }

    /// Whether nothing is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.in_flight.len()
    }

    /// The operations in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        let mut busy = vec![true; self.in_flight.len()];
        self.free.iter().for_each(|slot| busy[*slot as usize] = false);
        self.in_flight.iter().zip(busy).filter_map(|(op, busy)| busy.then_some(*op))
    }

    /// Whether an operation was handed over before this moment and has not completed.
    pub(crate) fn has_older_than(&self, moment_ns: u64) -> bool {
        self.in_flight().any(|op| op.issued_ns < moment_ns)
    }
}

/// What a worker leaves while a call may block it.
pub(crate) struct Belongings {
    pub recorder: Box<Recorder>,
    /// Goes on offering operations while the target blocks.
    pub open_loop: Option<Box<OpenLoop>>,
    /// What its replay had come to before the call.
    pub replay: Option<ReplayCounts>,
    /// The operation that the call performs.
    pub operation: Option<InFlight>,
}

/// What was left, and since when.
struct Left {
    belongings: Belongings,
    since_ns: u64,
}

/// The place for one worker.
#[derive(Default)]
pub(crate) struct Parking(Mutex<Option<Left>>);

impl Parking {
    /// Does `blocking` while the belongings lie here. They are gone if somebody gave this thread up
    /// meanwhile.
    pub(crate) fn during<T>(
        &self,
        belongings: Belongings,
        now_ns: u64,
        blocking: impl FnOnce() -> T,
    ) -> (T, Option<Belongings>) {
        *self.lock() = Some(Left { belongings, since_ns: now_ns });
        let answer = blocking();
        (answer, self.lock().take().map(|left| left.belongings))
    }

    /// Takes away what has lain here since before `moment_ns`.
    pub(crate) fn give_up(&self, moment_ns: u64) -> Option<Belongings> {
        self.lock().take_if(|left| left.since_ns < moment_ns).map(|left| left.belongings)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Left>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Operations that may fail in a row, with none succeeding, before a worker gives the target up.
const MAX_FAILURES_IN_A_ROW: u32 = 1_000;

/// How a worker's operations have fared.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) completed: u64,
    pub(crate) failures_in_a_row: u32,
    pub(crate) last_errno: i32,
}

impl Score {
    /// Why a worker gives up whose operations all fail; nothing while it does not.
    #[inline]
    pub(crate) fn gives_up(&self) -> Option<String> {
        (self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW).then(|| {
            format!(
                "gave up after {} failed operations in a row, the last with: {}",
                self.failures_in_a_row,
                error_name(self.last_errno)
            )
        })
    }
}

/// When a worker stopped issuing operations, and why.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) stopped_ns: u64,
    /// Operations in flight have taken too long.
    pub(crate) stalled: bool,
    pub(crate) gave_up: Option<String>,
}

impl End {
    /// Nothing was wrong.
    pub(crate) const fn at(stopped_ns: u64) -> Self {
        Self { stopped_ns, stalled: false, gave_up: None }
    }
}

/// What a reader of the results is told about a target that does not answer.
pub(crate) fn stall_note(operations: u64, timeout_ns: u64, early: bool) -> String {
    let consequence = if early { ", so the load ended early" } else { ", in flight when measuring ended" };
    format!(
        "the target stalled: {operations} operation(s) took longer than --timeout {}{consequence}",
        format_duration_ns(timeout_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_in_flight_grow_old() {
        let mut slots = Slots::new(3);
        let op = Op { direction: Direction::Write, offset: 0, len: 512, line: 0 };
        for issued_ns in [10, 20, 30] {
            let slot = slots.take().unwrap();
            slots.occupy(slot, InFlight { op, start_ns: issued_ns, issued_ns });
        }
        assert_eq!(slots.take(), None);
        assert_eq!(
            (slots.has_older_than(10), slots.has_older_than(11), slots.in_flight().count()),
            (false, true, 3)
        );
        assert_eq!(slots.release(0).issued_ns, 10);
        assert!(!slots.has_older_than(20) && slots.has_older_than(25));
        assert_eq!((slots.take(), slots.is_idle()), (Some(0), false));
    }

    #[test]
    fn a_call_that_takes_too_long_loses_the_belongings_and_a_short_one_keeps_them() {
        let parking = Parking::default();
        let belongings = || Belongings {
            recorder: Box::new(Recorder::new(0, 10, 10, 1)),
            open_loop: None,
            replay: None,
            operation: None,
        };
        let (_, kept) = parking.during(belongings(), 100, || assert!(parking.give_up(100).is_none()));
        assert!(kept.is_some());
        let (_, kept) = parking.during(belongings(), 100, || assert!(parking.give_up(101).is_some()));
        assert!(kept.is_none());
        assert!(parking.give_up(u64::MAX).is_none());
    }
}
