//! Sleeping until a moment more exactly than a runtime's timers, which know milliseconds alone.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use tokio::io::unix::AsyncFd;
use virtbench_engine::monotonic_ns;

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
