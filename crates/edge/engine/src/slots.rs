//! The operations a worker has in flight.

use virtbench_workload::{Direction, Op};

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
}
