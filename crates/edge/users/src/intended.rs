//! The intended starts of an open loop, which the users of a thread take in order.

use std::cell::RefCell;

use virtbench_workload::{ArrivalTimes, Rate};

use crate::window::Window;

/// Intended starts of one thread's users.
#[derive(Debug)]
pub struct IntendedStarts {
    all: ArrivalTimes,
    next: RefCell<ArrivalTimes>,
}

impl IntendedStarts {
    /// Those of thread number `thread` of `threads`, which share the rate.
    #[must_use]
    pub fn new(rate: Rate, seed: u64, thread: u32, threads: u32) -> Self {
        let all = ArrivalTimes::new(rate, seed, thread, threads);
        Self { next: RefCell::new(all.clone()), all }
    }

    /// The next one, in nanoseconds since users began.
    pub fn take_ns(&self) -> u64 {
        self.next.borrow_mut().next_ns()
    }

    /// How many lie in the window, and how many of those before its end nobody has taken; users began at `begin_ns` of the
    /// window's clock.
    pub fn offered_and_left(&self, window: Window, begin_ns: u64) -> (u64, u64) {
        let since_begin = |ns: u64| ns.saturating_sub(begin_ns);
        let (start, end) = (since_begin(window.start_ns), since_begin(window.end_ns));
        let offered = until(self.all.clone(), end).filter(|at| *at >= start).count() as u64;
        (offered, until(self.next.borrow().clone(), end).count() as u64)
    }
}

/// Intended starts before `end`, in nanoseconds since users began.
fn until(mut arrivals: ArrivalTimes, end: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || Some(arrivals.next_ns()).filter(|at| *at < end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::Arrivals;

    #[test]
    fn starts_in_the_window_are_offered_and_those_that_nobody_took_are_left() {
        let rate = Rate { per_second: 100.0, arrivals: Arrivals::Constant };
        let starts = [0, 1].map(|thread| IntendedStarts::new(rate, 1, thread, 2));
        let window = Window { start_ns: 6_000_000_000, end_ns: 8_000_000_000 };
        let both = || starts.each_ref().map(|one| one.offered_and_left(window, 5_000_000_000));
        assert_eq!(both(), [(100, 150), (100, 150)], "one second of ramp-up, two of measuring");
        assert_eq!(
            [starts[0].take_ns(), starts[1].take_ns(), starts[0].take_ns()],
            [0, 10_000_000, 20_000_000]
        );
        assert_eq!(both(), [(100, 148), (100, 149)]);
    }
}
