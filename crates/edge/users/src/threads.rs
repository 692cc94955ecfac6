//! The threads of a driver: they connect, begin together, and end.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{io, thread};

use futures_util::future::{Either, select};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use virtbench_counters::{thread_cpu_ns, thread_waiting_ns, throttled_ns};
use virtbench_engine::monotonic_ns;

use crate::course::LoadCourse;
use crate::intended::Ended;

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

/// How often a thread looks whether measuring begins or ends.
const LOOK_BETWEEN: Duration = Duration::from_millis(5);

/// A runtime of this thread alone.
///
/// # Errors
/// The kernel's resources are used up.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Waits until users begin; false where nothing is to begin.
pub async fn until_begin<F: Clone>(course: &LoadCourse<F>) -> bool {
    while course.begin_ns().is_none_or(|begin| monotonic_ns() < begin) {
        if course.is_cancelled() || course.has_ended() {
            return false;
        }
        tokio::time::sleep(LOOK_BETWEEN).await;
    }
    true
}

/// Does something, such as connecting to a server that may never answer; gives nothing where it has become needless meanwhile.
pub async fn unless<T>(is_needless: impl Fn() -> bool, act: impl Future<Output = T>) -> Option<T> {
    let needless = async {
        while !is_needless() {
            tokio::time::sleep(LOOK_BETWEEN).await;
        }
    };
    match select(pin!(act), pin!(needless)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// What the kernel accounts for a thread.
struct Account {
    at_ns: u64,
    cpu_ns: [u64; 2],
    waiting_ns: Option<u64>,
    throttled_ns: Option<u64>,
}

impl Account {
    fn now() -> Self {
        let (at_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        Self { at_ns, cpu_ns, waiting_ns: thread_waiting_ns(), throttled_ns: throttled_ns() }
    }

    fn since(&self, then: &Self) -> ThreadUse {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        ThreadUse {
            cpu_ns: [0, 1].map(|part| self.cpu_ns[part].saturating_sub(then.cpu_ns[part])),
            waited_ns: since(self.waiting_ns, then.waiting_ns),
            throttled_ns: since(self.throttled_ns, then.throttled_ns),
            late_starts: 0,
            over_ns: self.at_ns - then.at_ns,
        }
    }
}

/// Looks at the clock: measures what the thread itself uses and says when measuring has ended.
pub async fn observe<F: Clone>(course: &LoadCourse<F>, end: &watch::Sender<bool>) -> ThreadUse {
    let mut at_start = None;
    while !course.has_ended() {
        tokio::time::sleep(LOOK_BETWEEN).await;
        if at_start.is_none() && monotonic_ns() >= course.window().start_ns {
            at_start = Some(Account::now());
        }
    }
    let at_end = Account::now();
    end.send_replace(true);
    at_start.map_or_else(ThreadUse::default, |at_start| at_end.since(&at_start))
}

/// Waits for the users, but not much longer than until measuring has ended.
///
/// # Errors
/// What a user failed with.
pub async fn within_grace(
    users: impl Future<Output = io::Result<()>>,
    ended: &Ended,
    grace: Duration,
) -> io::Result<()> {
    let too_late = async {
        ended.wait().await;
        tokio::time::sleep(grace).await;
    };
    match select(pin!(users), pin!(too_late)).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Ok(()),
    }
}

/// A thread that is busier than this is what limits the load, in percent.
const BUSY_PERCENT: f64 = 90.0;

/// A driver whose control group was held back for longer than this is what limits the load, in percent.
const THROTTLED_PERCENT: f64 = 5.0;

/// A thread that waited for a processor for longer than this is reported, in percent.
const WAITED_PERCENT: f64 = 25.0;

/// Starts that came too late though a user was free: more than this share of those offered, in percent.
const LATE_PERCENT: f64 = 1.0;

/// Fewer are chance.
const FEW_LATE: u64 = 2;

/// What a thread used and had to wait for while measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How long it was ready to run and had no processor, in nanoseconds, where that is counted.
    pub waited_ns: Option<u64>,
    /// How long the process was held back by the quota of a control group, in nanoseconds, where that is counted.
    pub throttled_ns: Option<u64>,
    /// Intended starts that began too late though a user was free.
    pub late_starts: u64,
    /// How long that was looked at, in nanoseconds.
    pub over_ns: u64,
}

/// What a driver's threads used and had to wait for while measuring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriverUse {
    /// CPU time of all, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How busy the busiest was, in percent.
    pub busiest_percent: f64,
    /// For how much of the time the one that waited longest had no processor, in percent.
    pub waited_percent: Option<f64>,
    /// For how much of the time the driver was held back by a quota, in percent.
    pub throttled_percent: Option<f64>,
    /// Intended starts that began too late though a user was free.
    pub late_starts: u64,
    /// Whether the driver is the limit.
    pub is_limit: bool,
}

impl DriverUse {
    /// What the threads used together, of a load that offered so many operations where that is known.
    #[must_use]
    pub fn of_threads(threads: &[ThreadUse], offered: u64) -> Self {
        let percent = |ns: u64, one: &ThreadUse| ns as f64 * 100.0 / one.over_ns.max(1) as f64;
        let most = |of: fn(&ThreadUse) -> Option<u64>| {
            let all = threads.iter().filter_map(|one| Some(percent(of(one)?, one)));
            all.reduce(f64::max)
        };
        let busiest_percent = most(|one| Some(one.cpu_ns[0] + one.cpu_ns[1])).unwrap_or(0.0);
        let throttled_percent = most(|one| one.throttled_ns);
        let late_starts = threads.iter().map(|one| one.late_starts).sum();
        let has_late = late_starts > FEW_LATE && late_starts as f64 * 100.0 > offered as f64 * LATE_PERCENT;
        Self {
            cpu_ns: [0, 1].map(|part| threads.iter().map(|one| one.cpu_ns[part]).sum()),
            busiest_percent,
            waited_percent: most(|one| one.waited_ns),
            throttled_percent,
            late_starts,
            is_limit: busiest_percent > BUSY_PERCENT
                || throttled_percent.is_some_and(|percent| percent > THROTTLED_PERCENT)
                || has_late,
        }
    }

    /// What a reader should know.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let mut limit = |why: String| remarks.push(format!("the driver is the limit: {why}"));
        if self.busiest_percent > BUSY_PERCENT {
            limit(format!("its busiest thread was busy {:.0} % of the time", self.busiest_percent));
        }
        if let Some(percent) = self.throttled_percent.filter(|percent| *percent > THROTTLED_PERCENT) {
            limit(format!("the quota of its control group held it back for {percent:.0} % of the time"));
        }
        if self.is_limit && remarks.is_empty() {
            let late = self.late_starts;
            remarks.push(format!(
                "the driver is the limit: {late} operations began late though a user was free"
            ));
        }
        if let Some(percent) = self.waited_percent.filter(|percent| *percent > WAITED_PERCENT) {
            remarks.push(format!(
                "a thread of the driver waited for a processor {percent:.0} % of the time, which is in the response times"
            ));
        }
        remarks
    }
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

#[cfg(test)]
mod driver_use_tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn thread(user: u64, system: u64) -> ThreadUse {
        ThreadUse { cpu_ns: [user, system], over_ns: SECOND, ..ThreadUse::default() }
    }

    fn remarks(one: ThreadUse) -> (bool, String) {
        let used = DriverUse::of_threads(&[thread(1, 1), one], 1_000);
        (used.is_limit, used.remarks().join("\n"))
    }

    #[test]
    fn the_busiest_thread_says_whether_the_driver_is_the_limit() {
        let used =
            DriverUse::of_threads(&[thread(800_000_000, 150_000_000), thread(10_000_000, 20_000_000)], 0);
        assert_eq!(
            (used.cpu_ns, used.busiest_percent, used.is_limit),
            ([810_000_000, 170_000_000], 95.0, true)
        );
        let idle = DriverUse::of_threads(&[ThreadUse::default()], 0);
        assert_eq!((idle.busiest_percent, idle.is_limit, idle.remarks().len()), (0.0, false, 0));
    }

    #[test]
    fn a_driver_that_is_not_let_work_is_the_limit_though_it_is_hardly_busy() {
        let held = ThreadUse { throttled_ns: Some(SECOND / 2), ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(held);
        assert!(is_limit && said.contains("quota") && said.contains("50 %"), "{said}");
        let late = ThreadUse { late_starts: 40, ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(late);
        assert!(is_limit && said.contains("40 operations began late"), "{said}");
        assert!(!remarks(ThreadUse { late_starts: 10, ..thread(1, 1) }).0, "1 % of a thousand is chance");
        let crowded = ThreadUse { waited_ns: Some(SECOND * 2 / 5), ..thread(20_000_000, 0) };
        let (is_limit, said) = remarks(crowded);
        assert!(!is_limit && said.contains("waited for a processor 40 %"), "{said}");
    }
}
