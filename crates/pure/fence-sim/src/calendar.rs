//! What happens next in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of an event's number; equal times are taken in the order of entry.
const ORDER_BITS: u32 = 40;
/// Bits of what happens.
const WHAT_BITS: u32 = 24;

/// The most that an event may carry.
pub const MAX_WHAT: u32 = (1 << WHAT_BITS) - 1;

/// Future events, the earliest first. An event is one 128-bit key, time above order above what, so that
/// the heap compares and moves one number.
#[derive(Debug, Clone, Default)]
pub struct Calendar {
    heap: BinaryHeap<Reverse<u128>>,
    entered: u64,
}

impl Calendar {
    /// Enters that `what` happens at `at_ns`. `what` is at most [`MAX_WHAT`].
    #[inline]
    pub fn enter(&mut self, at_ns: u64, what: u32) {
        debug_assert!(what <= MAX_WHAT);
        let order = self.entered & ((1 << ORDER_BITS) - 1);
        self.entered += 1;
        let low = (order << WHAT_BITS) | u64::from(what & MAX_WHAT);
        self.heap.push(Reverse((u128::from(at_ns) << 64) | u128::from(low)));
    }

    /// When the next event happens.
    #[inline]
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(key)| (key >> 64) as u64)
    }

    /// Takes the next event: when, and what.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the parts of the key
    pub fn take(&mut self) -> Option<(u64, u32)> {
        let Reverse(key) = self.heap.pop()?;
        Some(((key >> 64) as u64, key as u32 & MAX_WHAT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_by_entry(times in prop::collection::vec(0u64..50, 0..200)) {
            let mut calendar = Calendar::default();
            for (what, time) in (0..).zip(&times) {
                calendar.enter(*time, what);
            }
            let taken: Vec<(u64, u32)> = std::iter::from_fn(|| calendar.take()).collect();
            let mut wanted: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            wanted.sort_by_key(|(time, _)| *time);
            prop_assert_eq!(taken, wanted);
        }
    }
}
