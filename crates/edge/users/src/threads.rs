//! The threads of a driver: they connect, begin together, and end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use virtbench_engine::monotonic_ns;

use crate::course::LoadCourse;

/// How often it is looked whether a stop was asked for.
const LOOK: Duration = Duration::from_millis(50);
/// The longest that connecting may take, and as much again for each user, in milliseconds.
const CONNECT_MS: u64 = 30_000;
const CONNECT_MS_EACH: u64 = 1_000;

/// Why threads did not do their work. `E` is why one of them could not connect its users.
#[derive(Debug, Error)]
pub enum ThreadsError<E> {
    /// Users cannot be connected.
    #[error("users cannot be connected")]
    Connect(E),
    /// It took too long until all were connected.
    #[error("users cannot be connected within {0:?}")]
    TooLong(Duration),
    /// A stop was asked for before users began.
    #[error("stopped")]
    Stopped,
    /// A thread failed.
    #[error(transparent)]
    Driver(#[from] io::Error),
}

/// What is to be known to start threads.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// How many.
    pub threads: u32,
    /// The longest that connecting may take.
    pub limit: Duration,
    /// When users begin, in nanoseconds of the monotonic clock; as soon as all are connected where there is none, or where
    /// that is later.
    pub begin_at_ns: Option<u64>,
}

impl Start {
    /// Threads for so many users, who have time to connect.
    #[must_use]
    pub fn of_users(users: u32, threads: u32, begin_at_ns: Option<u64>) -> Self {
        let limit = Duration::from_millis(CONNECT_MS + CONNECT_MS_EACH * u64::from(users));
        Self { threads, limit, begin_at_ns }
    }
}

/// Runs `work` in threads, each with its number and a sender by which it says that its users are connected or why not; lets
/// users begin when all are; runs `follow` meanwhile, which may ask whether all threads have ended. Gives what the threads and
/// `follow` return.
///
/// # Errors
/// The first failure; all threads have ended by then.
pub fn run_threads<F, E, U, S>(
    course: &LoadCourse<F>,
    start: Start,
    stop: &AtomicBool,
    work: impl Fn(u32, &Sender<Result<(), E>>) -> io::Result<U> + Sync,
    follow: impl FnOnce(&dyn Fn() -> bool) -> S,
) -> Result<(Vec<U>, S), ThreadsError<E>>
where
    F: Clone + Send,
    E: Send,
    U: Send,
{
    thread::scope(|scope| {
        let (tell, ready) = mpsc::channel();
        let threads: Vec<_> = (0..start.threads)
            .map(|number| {
                let (work, tell) = (&work, tell.clone());
                scope.spawn(move || work(number, &tell))
            })
            .collect();
        drop(tell);
        let begun = all_ready(start, &ready, stop).inspect_err(|_| course.cancel());
        let followed = begun.map(|()| {
            course.begin(start.begin_at_ns.unwrap_or(0).max(monotonic_ns()));
            follow(&|| threads.iter().all(thread::ScopedJoinHandle::is_finished))
        });
        let used: io::Result<Vec<U>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        let followed = followed?;
        Ok((used?, followed))
    })
}

/// Waits until every thread has its connections.
fn all_ready<E>(
    start: Start,
    ready: &Receiver<Result<(), E>>,
    stop: &AtomicBool,
) -> Result<(), ThreadsError<E>> {
    let (begun, mut waiting) = (Instant::now(), start.threads);
    while waiting > 0 {
        match ready.recv_timeout(LOOK) {
            Ok(connected) => {
                connected.map_err(ThreadsError::Connect)?;
                waiting -= 1;
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(ThreadsError::Stopped);
            }
            Err(RecvTimeoutError::Timeout) if begun.elapsed() > start.limit => {
                return Err(ThreadsError::TooLong(start.limit));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if stop.load(Ordering::Relaxed) { Err(ThreadsError::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start { threads: 3, limit: Duration::from_millis(100), begin_at_ns: None };

    #[test]
    fn threads_begin_together_when_all_are_ready() {
        let course: LoadCourse<()> = LoadCourse::new(0, 1_000_000);
        let at_ns = monotonic_ns() + 20_000_000;
        let work = |number: u32, tell: &Sender<Result<(), ()>>| {
            let _ = tell.send(Ok(()));
            while course.begin_ns().is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(number)
        };
        let start = Start { begin_at_ns: Some(at_ns), ..START };
        let done = run_threads(&course, start, &AtomicBool::new(false), work, |_| course.begin_ns());
        assert_eq!(done.unwrap(), (vec![0, 1, 2], Some(at_ns)));
    }

    #[test]
    fn nobody_begins_where_one_fails_or_takes_too_long() {
        let course: LoadCourse<()> = LoadCourse::new(0, 1_000_000);
        let one_fails = |number: u32, tell: &Sender<Result<(), u32>>| {
            let _ = tell.send(if number == 1 { Err(7) } else { Ok(()) });
            Ok(())
        };
        let done = run_threads(&course, START, &AtomicBool::new(false), one_fails, |_| ());
        assert!(matches!(done, Err(ThreadsError::Connect(7))) && course.is_cancelled());
        let course: LoadCourse<()> = LoadCourse::new(0, 1_000_000);
        let hangs = |_: u32, _: &Sender<Result<(), u32>>| {
            while !course.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let done = run_threads(&course, START, &AtomicBool::new(false), hangs, |_| ());
        assert!(matches!(done, Err(ThreadsError::TooLong(_))));
        let course: LoadCourse<()> = LoadCourse::new(0, 1_000_000);
        let hangs = |_: u32, _: &Sender<Result<(), u32>>| {
            while !course.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let done = run_threads(&course, START, &AtomicBool::new(true), hangs, |_| ());
        assert!(matches!(done, Err(ThreadsError::Stopped)));
    }
}
