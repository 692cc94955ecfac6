//! The intended starts of an open loop, which the users of a thread take in order.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use virtbench_engine::monotonic_ns;
use virtbench_units::Window;
use virtbench_workload::{ArrivalTimes, Rate};

/// Intended starts of one thread's users.
#[derive(Debug)]
pub struct IntendedStarts {
    all: ArrivalTimes,
    next: RefCell<ArrivalTimes>,
    late: Cell<u64>,
}

/// A user who waits for a start is woken later than this because the driver does not get on, in nanoseconds.
const LATE_NS: u64 = 10_000_000;

impl IntendedStarts {
    /// Those of thread number `thread` of `threads`, which share the rate.
    #[must_use]
    pub fn new(rate: Rate, seed: u64, thread: u32, threads: u32) -> Self {
        let all = ArrivalTimes::new(rate, seed, thread, threads);
        Self { next: RefCell::new(all.clone()), all, late: Cell::new(0) }
    }

    /// The next one, in nanoseconds since users began.
    pub fn take_ns(&self) -> u64 {
        self.next.borrow_mut().next_ns()
    }

    /// Waits for the next one and gives its moment by the clock by which users began at `begin_ns`; nothing where measuring ends
    /// first.
    ///
    /// # Errors
    /// As [`Alarm::sleep_until`].
    pub async fn wait(&self, alarm: &Alarm, ended: &Ended, begin_ns: u64) -> io::Result<Option<u64>> {
        let at_ns = begin_ns.saturating_add(self.take_ns());
        let is_free = monotonic_ns() < at_ns;
        if ended.unless(alarm.sleep_until(at_ns)).await.transpose()?.is_none() {
            return Ok(None);
        }
        let is_late = is_free && monotonic_ns() > at_ns.saturating_add(LATE_NS);
        self.late.set(self.late.get() + u64::from(is_late));
        Ok(Some(at_ns))
    }

    /// How many began late though a user was free.
    pub fn late(&self) -> u64 {
        self.late.get()
    }

    /// How many lie in the window; users began at `begin_ns` of the window's clock.
    pub fn offered(&self, window: Window, begin_ns: u64) -> u64 {
        until(self.all.clone(), begin_ns, window.end_ns).filter(|at| *at >= window.start_ns).count() as u64
    }

    /// Those before the window's end that nobody has taken, by the window's clock, of which users began at `begin_ns`.
    pub fn left(&self, window: Window, begin_ns: u64) -> impl Iterator<Item = u64> + use<> {
        until(self.next.borrow().clone(), begin_ns, window.end_ns)
    }
}

/// Intended starts before `end_ns` of a clock by which users began at `begin_ns`.
fn until(mut arrivals: ArrivalTimes, begin_ns: u64, end_ns: u64) -> impl Iterator<Item = u64> {
    let next = move || begin_ns.saturating_add(arrivals.next_ns());
    std::iter::repeat_with(next).take_while(move |at| *at < end_ns)
}

/// A timer of the kernel's.
#[derive(Debug)]
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// A timer of this runtime.
    ///
    /// # Errors
    /// The kernel has no more of them.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the descriptor is owned, so that it stays open and the same for as long as the value lives.
        Ok(Self(unsafe { AsyncFd::register(timer) }?))
    }

    /// Sleeps until the monotonic clock shows `at_ns`, or not at all if it already does.
    ///
    /// # Errors
    /// None that the kernel tells of.
    pub async fn sleep_until(&self, at_ns: u64) -> io::Result<()> {
        if monotonic_ns() >= at_ns {
            return Ok(());
        }
        let (seconds, rest) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        let at = Timespec {
            tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(rest).unwrap_or(0),
        };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &timer)?;
        while monotonic_ns() < at_ns {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.0.get_ref(), &mut expirations) {
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Tells the tasks of a thread when measuring has ended.
#[derive(Debug, Clone)]
pub struct Ended(watch::Receiver<bool>);

impl Ended {
    /// What the tasks of a thread have, and what its observer sets.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (end, ended) = watch::channel(false);
        (end, Self(ended))
    }

    /// Waits for a future; nothing where measuring ends first.
    pub async fn unless<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.0.clone();
        let ended = pin!(ended.wait_for(|ended| *ended));
        match select(pin!(future), ended).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Waits for a future; nothing where measuring has ended so long before.
    pub async fn with_grace<T>(&self, future: impl Future<Output = T>, grace: Duration) -> Option<T> {
        let over = pin!(async {
            self.wait().await;
            tokio::time::sleep(grace).await;
        });
        match select(pin!(future), over).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Sleeps for some nanoseconds; whether measuring still goes on.
    pub async fn sleep(&self, ns: u64) -> bool {
        ns == 0 || self.unless(tokio::time::sleep(Duration::from_nanos(ns))).await.is_some()
    }

    /// Waits until measuring has ended.
    pub async fn wait(&self) {
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }
}

#[cfg(test)]
mod tests {
    use virtbench_workload::Arrivals;

    use super::*;

    #[test]
    fn starts_in_the_window_are_offered_and_those_that_nobody_took_are_left() {
        let rate = Rate { per_second: 100.0, arrivals: Arrivals::Constant };
        let starts = [0, 1].map(|thread| IntendedStarts::new(rate, 1, thread, 2));
        let window = Window { start_ns: 6_000_000_000, end_ns: 8_000_000_000 };
        let begin_ns = 5_000_000_000;
        let both = || {
            starts.each_ref().map(|one| (one.offered(window, begin_ns), one.left(window, begin_ns).count()))
        };
        assert_eq!(both(), [(100, 150), (100, 150)], "one second of ramp-up, two of measuring");
        assert_eq!(
            [starts[0].take_ns(), starts[1].take_ns(), starts[0].take_ns()],
            [0, 10_000_000, 20_000_000]
        );
        assert_eq!(both(), [(100, 148), (100, 149)]);
        assert_eq!(starts[1].left(window, begin_ns).next(), Some(5_030_000_000));
    }
}
