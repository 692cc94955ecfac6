//! Deliveries that wait ([TPC-C 5.11], clause 2.7.2): a bounded queue that counts.

use std::collections::VecDeque;

use crate::input::Delivery;

/// A Delivery that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// What was entered.
    pub delivery: Delivery,
    /// When it was put into the queue, in nanoseconds.
    pub since_ns: u64,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    most: usize,
    longest: usize,
}

impl Queue {
    /// An empty queue for `most` Deliveries.
    pub fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most, longest: 0 }
    }

    /// Puts one at the end; whether there was room.
    pub fn offer(&mut self, delivery: Delivery, now_ns: u64) -> bool {
        let has_room = self.waiting.len() < self.most;
        if has_room {
            self.waiting.push_back(Waiting { delivery, since_ns: now_ns });
            self.longest = self.longest.max(self.waiting.len());
        }
        has_room
    }

    /// Takes the one that has waited longest.
    pub fn take(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// The most that have waited since the queue was made, or since this was last called.
    pub fn take_longest(&mut self) -> usize {
        std::mem::replace(&mut self.longest, self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_is_the_first_out_and_the_queue_is_bounded() {
        let mut queue = Queue::new(2);
        let delivery = |warehouse| Delivery { warehouse, carrier: 1 };
        assert!(
            queue.offer(delivery(1), 10) && queue.offer(delivery(2), 20) && !queue.offer(delivery(3), 30)
        );
        assert_eq!(queue.take_longest(), 2);
        assert_eq!(queue.take(), Some(Waiting { delivery: delivery(1), since_ns: 10 }));
        assert_eq!(queue.take().map(|waiting| waiting.since_ns), Some(20));
        assert_eq!((queue.take(), queue.take_longest(), queue.take_longest()), (None, 2, 0));
    }
}
