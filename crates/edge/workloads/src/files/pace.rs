//! When a thread's operations may start.

use std::thread;
use std::time::Duration;

use virtbench_engine::monotonic_ns;
use virtbench_workload::ArrivalTimes;
use virtbench_workload::files::Pace;

use crate::files::board::Board;

/// The longest a thread sleeps without looking whether the load is over.
const NAP_NS: u64 = 20_000_000;

/// Sleeps until the clock shows `at_ns`; false if the load is over before.
pub(crate) fn sleep_until(board: &Board, at_ns: u64) -> bool {
    loop {
        let now_ns = monotonic_ns();
        if board.is_over(now_ns) {
            return false;
        }
        if now_ns >= at_ns {
            return true;
        }
        thread::sleep(Duration::from_nanos((at_ns - now_ns).min(NAP_NS)));
    }
}

/// The pace of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    times: Option<(ArrivalTimes, bool)>,
    origin_ns: u64,
}

impl Pacer {
    /// The pace of thread number `thread` of `threads`, from a moment of the clock on.
    pub(crate) fn new(pace: Option<Pace>, seed: u64, thread: u32, threads: u32, start_ns: u64) -> Self {
        let times = pace.map(|pace| (ArrivalTimes::new(pace.rate, seed, thread, threads), pace.open));
        Self { times, origin_ns: start_ns }
    }

    /// Waits until the next operation may start; the moment from which its response time counts, or
    /// nothing if the load is over before.
    pub(crate) fn wait(&mut self, board: &Board) -> Option<u64> {
        let Some((times, open)) = &mut self.times else {
            let now_ns = monotonic_ns();
            return (!board.is_over(now_ns)).then_some(now_ns);
        };
        let due_ns = self.origin_ns + times.next_ns();
        if !sleep_until(board, due_ns) {
            return None;
        }
        if *open {
            return Some(due_ns);
        }
        // A limit: what was missed is not made up for. All later moments move along.
        let now_ns = monotonic_ns();
        self.origin_ns += now_ns - due_ns;
        Some(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::{Arrivals, Rate};

    fn pace(open: bool) -> Option<Pace> {
        Some(Pace { rate: Rate { per_second: 1_000.0, arrivals: Arrivals::Constant }, open })
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start_and_a_limit_does_not() {
        let board = Board::new(&[], 0, u64::MAX);
        let start_ns = monotonic_ns() - 50_000_000;
        let mut open = Pacer::new(pace(true), 1, 0, 1, start_ns);
        let starts: Vec<u64> = (0..3).map(|_| open.wait(&board).unwrap() - start_ns).collect();
        assert_eq!(starts, [0, 1_000_000, 2_000_000]);
        let mut limit = Pacer::new(pace(false), 1, 0, 1, start_ns);
        let first = limit.wait(&board).unwrap();
        assert!(first >= start_ns + 50_000_000);
        // Not at once, although 50 ms were missed.
        assert!(limit.wait(&board).unwrap() >= first + 1_000_000);
    }

    #[test]
    fn nobody_waits_for_a_load_that_is_over() {
        let board = Board::new(&[], 0, u64::MAX);
        board.finish();
        assert_eq!(Pacer::new(pace(true), 1, 0, 1, u64::MAX / 2).wait(&board), None);
    }
}
