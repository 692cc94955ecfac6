//! What a thread of a driver does beside its users' tasks: waits for the begin, looks at the clock, knows its own CPU time.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use virtbench_counters::{thread_cpu_ns, thread_waiting_ns, throttled_ns};
use virtbench_engine::monotonic_ns;

use crate::course::LoadCourse;
use crate::driver_use::ThreadUse;
use crate::ended::Ended;

/// How often a thread looks whether measuring begins or ends.
const LOOK: Duration = Duration::from_millis(5);
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
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Does something, such as connecting to a server that may never answer; gives nothing where it has become needless meanwhile.
pub async fn unless<T>(is_needless: impl Fn() -> bool, act: impl Future<Output = T>) -> Option<T> {
    let needless = async {
        while !is_needless() {
            tokio::time::sleep(LOOK).await;
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
        tokio::time::sleep(LOOK).await;
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
