//! The operations a worker has under way.

use virtbench_workload::{Direction, Op};

/// An operation under way.
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
        let op = Op { direction: Direction::Read, offset: 0, len: 0 };
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

    /// Whether nothing is under way.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.in_flight.len()
    }

    /// How many operations are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.in_flight.len() - self.free.len()
    }

    /// How many operations were handed over before this moment and have not completed.
    pub(crate) fn older_than(&self, moment_ns: u64) -> usize {
        let mut busy = vec![true; self.in_flight.len()];
        self.free.iter().for_each(|slot| busy[*slot as usize] = false);
        self.in_flight.iter().zip(busy).filter(|(op, busy)| *busy && op.issued_ns < moment_ns).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_under_way_grow_old() {
        let mut slots = Slots::new(3);
        let op = Op { direction: Direction::Write, offset: 0, len: 512 };
        for issued_ns in [10, 20, 30] {
            let slot = slots.take().unwrap();
            slots.occupy(slot, InFlight { op, start_ns: issued_ns, issued_ns });
        }
        assert_eq!(slots.take(), None);
        assert_eq!((slots.older_than(10), slots.older_than(25), slots.under_way()), (0, 2, 3));
        assert_eq!(slots.release(0).issued_ns, 10);
        assert_eq!((slots.older_than(25), slots.take(), slots.is_idle()), (1, Some(0), false));
    }
}
