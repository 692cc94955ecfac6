//! What happens next in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of an event's number; equal times are taken in the order of entry.
const ORDER_BITS: u32 = 40;
/// Bits of what happens.
const WHAT_BITS: u32 = 24;

/// The most that an event may carry.
pub const MAX_WHAT: u32 = (1 << WHAT_BITS) - 1;

/// Events of which one at most is entered at a time, the last numbers there are: the devices' completions.
const SINGLE: usize = 2;
/// Later than any event.
const NEVER: u128 = u128::MAX;

/// Future events, the earliest first. An event is one 128-bit key, time above order above what, so that
/// one number is compared and moved. Most events are completions of a device that serves one command at a time: they
/// have places of their own beside the heap.
#[derive(Debug, Clone)]
pub struct Calendar {
    heap: BinaryHeap<Reverse<u128>>,
    single: [u128; SINGLE],
    entered: u64,
}

impl Default for Calendar {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), single: [NEVER; SINGLE], entered: 0 }
    }
}

impl Calendar {
    /// Enters that `what` happens at `at_ns`. `what` is at most [`MAX_WHAT`]; of that and of the one below it, one is
    /// entered at a time.
    #[inline]
    pub fn enter(&mut self, at_ns: u64, what: u32) {
        debug_assert!(what <= MAX_WHAT);
        let order = self.entered & ((1 << ORDER_BITS) - 1);
        self.entered += 1;
        let low = (order << WHAT_BITS) | u64::from(what & MAX_WHAT);
        let key = (u128::from(at_ns) << 64) | u128::from(low);
        match self.single.get_mut((MAX_WHAT - what) as usize) {
            Some(place) => {
                debug_assert!(*place == NEVER, "{what} is entered already");
                *place = key;
            }
            None => self.heap.push(Reverse(key)),
        }
    }

    /// When the next event happens.
    #[inline]
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let key = self.single[0].min(self.single[1]).min(self.heap_key());
        (key != NEVER).then_some((key >> 64) as u64)
    }

    /// Takes the next event: when, and what.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the parts of the key
    pub fn take(&mut self) -> Option<(u64, u32)> {
        let heap = self.heap_key();
        let key = self.single[0].min(self.single[1]).min(heap);
        if key == NEVER {
            return None;
        }
        if key == heap {
            self.heap.pop();
        } else {
            self.single[usize::from(key == self.single[1])] = NEVER;
        }
        Some(((key >> 64) as u64, key as u32 & MAX_WHAT))
    }

    #[inline]
    fn heap_key(&self) -> u128 {
        self.heap.peek().map_or(NEVER, |Reverse(key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_by_entry(
            times in prop::collection::vec(0u64..50, 2..200),
            single in prop::array::uniform2(0usize..200),
        ) {
            let mut whats: Vec<u32> = (0..).take(times.len()).collect();
            let [a, b] = single.map(|place| place % times.len());
            (whats[a], whats[b]) = (MAX_WHAT, MAX_WHAT - 1);
            let mut calendar = Calendar::default();
            for (what, time) in whats.iter().zip(&times) {
                calendar.enter(*time, *what);
                prop_assert!(calendar.next_ns().is_some_and(|next| next <= *time));
            }
            let taken: Vec<(u64, u32)> = std::iter::from_fn(|| calendar.take()).collect();
            prop_assert_eq!(calendar.next_ns(), None);
            let mut wanted: Vec<(u64, u32)> = times.iter().copied().zip(whats).collect();
            wanted.sort_by_key(|(time, _)| *time);
            prop_assert_eq!(taken, wanted);
        }
    }
}
