//! What a thread of a driver does beside its users' tasks: waits for the begin, looks at the clock, knows its own CPU time.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use virtbench_counters::thread_cpu_ns;
use virtbench_engine::monotonic_ns;

use crate::course::Course;
use crate::ended::Ended;

/// How often a thread looks whether measuring begins or ends.
const LOOK: Duration = Duration::from_millis(5);
/// A thread that is busier than this is what limits the load, in percent.
const BUSY_PERCENT: f64 = 90.0;

/// CPU time of a thread while measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How long that was looked at, in nanoseconds.
    pub over_ns: u64,
}

/// CPU time of a driver's threads while measuring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriverUse {
    /// CPU time of all, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
    /// How busy the busiest was, in percent.
    pub busiest_percent: f64,
    /// Whether that is so much that the driver is the limit.
    pub is_limit: bool,
}

impl DriverUse {
    /// What the threads used together.
    #[must_use]
    pub fn of_threads(threads: impl Iterator<Item = ThreadUse> + Clone) -> Self {
        let busy =
            |one: ThreadUse| (one.cpu_ns[0] + one.cpu_ns[1]) as f64 * 100.0 / one.over_ns.max(1) as f64;
        let busiest_percent = threads.clone().map(busy).fold(0.0, f64::max);
        let cpu_ns = threads.fold([0, 0], |sum, one| [sum[0] + one.cpu_ns[0], sum[1] + one.cpu_ns[1]]);
        Self { cpu_ns, busiest_percent, is_limit: busiest_percent > BUSY_PERCENT }
    }
}

/// A runtime of this thread alone.
///
/// # Errors
/// The kernel's resources are used up.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Waits until users begin; false where nothing is to begin.
pub async fn until_begin<F: Clone>(course: &Course<F>) -> bool {
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

/// Looks at the clock: measures the thread's own CPU time and says when measuring has ended.
pub async fn observe<F: Clone>(course: &Course<F>, end: &watch::Sender<bool>) -> ThreadUse {
    let mut at_start = None;
    while !course.has_ended() {
        tokio::time::sleep(LOOK).await;
        let now_ns = monotonic_ns();
        if at_start.is_none() && now_ns >= course.window().start_ns {
            at_start = Some((now_ns, thread_cpu_ns()));
        }
    }
    let (now_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
    end.send_replace(true);
    at_start.map_or_else(ThreadUse::default, |(then_ns, then)| ThreadUse {
        cpu_ns: [0, 1].map(|part| cpu_ns[part].saturating_sub(then[part])),
        over_ns: now_ns - then_ns,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_says_whether_the_driver_is_the_limit() {
        let thread = |user, system| ThreadUse { cpu_ns: [user, system], over_ns: 1_000 };
        let used = DriverUse::of_threads([thread(800, 150), thread(10, 20)].into_iter());
        assert_eq!((used.cpu_ns, used.busiest_percent, used.is_limit), ([810, 170], 95.0, true));
        let idle = DriverUse::of_threads([ThreadUse::default()].into_iter());
        assert_eq!((idle.busiest_percent, idle.is_limit), (0.0, false));
    }
}
