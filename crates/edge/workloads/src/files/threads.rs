//! The threads of a load, waited for within a limit.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::monotonic_ns;

use crate::files::board::{Board, Ended};
use crate::files::error::FilesError;
use crate::files::outside::Outside;

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
