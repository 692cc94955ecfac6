//! The threads of a load: what they share, when their operations may start, and waiting for them within a limit.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

use virtbench_engine::monotonic_ns;
use virtbench_workload::ArrivalTimes;
use virtbench_workload::files::Pace;

use crate::files::board::{Board, Ended, FilesError};

/// How long a thread may take to come back once the load is over. An fsync of all that a slow disk
/// has to write can take this long; a thread that takes longer is left behind.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the outside is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// Threads that write on one board. They own all they need: one that blocks outlives the load.
pub(crate) struct Threads {
    board: Arc<Board>,
    through: mpsc::Sender<io::Result<()>>,
    heard: mpsc::Receiver<io::Result<()>>,
    count: usize,
}

impl Threads {
    /// No threads yet.
    pub(crate) fn new(board: Arc<Board>) -> Self {
        let (through, heard) = mpsc::channel();
        Self { board, through, heard, count: 0 }
    }

    /// Starts one, with its number.
    pub(crate) fn start(
        &mut self,
        number: u32,
        work: impl FnOnce(u32) -> io::Result<()> + Send + 'static,
    ) -> Result<(), FilesError> {
        let through = self.through.clone();
        let started = thread::Builder::new()
            .name(format!("files-{number}"))
            // A guest has little memory, and nothing here recurses.
            .stack_size(256 << 10)
            .spawn(move || {
                let _ = through.send(work(number));
            });
        self.count += 1;
        started.map(|_| ()).map_err(|source| {
            self.board.finish();
            FilesError::Resource { what: "a thread", source }
        })
    }

    /// Waits for all of them, and hands on what they do. The outside can end the load early.
    pub(crate) fn gather(self, outside: &Outside<'_>) {
        drop(self.through);
        let mut told = [0, 0];
        let mut tell = || {
            let totals = self.board.totals();
            (outside.count)(totals[0] - told[0], totals[1] - told[1]);
            told = totals;
        };
        let mut left = self.count;
        let mut over_since: Option<Instant> = None;
        while left > 0 {
            match self.heard.recv_timeout(LOOK) {
                Ok(Ok(())) => left -= 1,
                Ok(Err(error)) => {
                    left -= 1;
                    self.board.end(Ended::Failed { what: "a thread".into(), why: error.to_string() });
                }
                // A thread that ends without a word has panicked.
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let why = "it panicked; this is a defect of virtbench".into();
                    self.board.end(Ended::Failed { what: "a thread".into(), why });
                    return;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            tell();
            if (outside.is_over)() {
                self.board.finish();
            }
            if self.board.is_over(monotonic_ns()) {
                let since = over_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    self.board.end(Ended::Stalled { seconds: PATIENCE.as_secs() });
                    return;
                }
            }
        }
    }
}

/// What a running load knows of the outside.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Whether it shall end now.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Takes the operations completed since the last call and the bytes they moved.
    pub count: &'a (dyn Fn(u64, u64) + Sync),
}

/// What the threads of a load share.
pub(crate) struct Phase {
    /// When threads begin, on the monotonic clock.
    pub start_ns: u64,
    /// Where they write what they did.
    pub board: Arc<Board>,
}

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
    use virtbench_workload::{Arrivals, Rate};

    use super::*;

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
