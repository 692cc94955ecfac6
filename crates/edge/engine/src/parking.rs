//! Where a worker leaves what it recorded while its thread may be stuck in a system call.
//!
//! A blocking call cannot be taken back: a thread whose target never answers is lost until it does.
//! What it recorded need not be, so it lies here meanwhile, and the thread that finds that the call
//! takes too long takes it away and goes on without that one.

use std::sync::{Mutex, PoisonError};

use crate::open_loop::OpenLoop;
use crate::recorder::Recorder;
use crate::replay::ReplayCounts;
use crate::slots::InFlight;

/// What a worker leaves while a call may block it.
pub(crate) struct Belongings {
    pub recorder: Box<Recorder>,
    /// Goes on offering operations while the target blocks.
    pub open_loop: Option<Box<OpenLoop>>,
    /// What its replay had come to before the call.
    pub replay: Option<ReplayCounts>,
    /// The operation that the call performs.
    pub operation: Option<InFlight>,
}

/// What was left, and since when.
struct Left {
    belongings: Belongings,
    since_ns: u64,
}

/// The place for one worker.
#[derive(Default)]
pub(crate) struct Parking(Mutex<Option<Left>>);

impl Parking {
    /// Does `blocking` while the belongings lie here. They are gone if somebody gave this thread up
    /// meanwhile.
    pub(crate) fn during<T>(
        &self,
        belongings: Belongings,
        now_ns: u64,
        blocking: impl FnOnce() -> T,
    ) -> (T, Option<Belongings>) {
        *self.lock() = Some(Left { belongings, since_ns: now_ns });
        let answer = blocking();
        (answer, self.lock().take().map(|left| left.belongings))
    }

    /// Takes away what has lain here since before `moment_ns`.
    pub(crate) fn give_up(&self, moment_ns: u64) -> Option<Belongings> {
        self.lock().take_if(|left| left.since_ns < moment_ns).map(|left| left.belongings)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Left>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_takes_too_long_loses_the_belongings_and_a_short_one_keeps_them() {
        let parking = Parking::default();
        let belongings = || Belongings {
            recorder: Box::new(Recorder::new(0, 10, 10, 1)),
            open_loop: None,
            replay: None,
            operation: None,
        };
        let (_, kept) = parking.during(belongings(), 100, || assert!(parking.give_up(100).is_none()));
        assert!(kept.is_some());
        let (_, kept) = parking.during(belongings(), 100, || assert!(parking.give_up(101).is_some()));
        assert!(kept.is_none());
        assert!(parking.give_up(u64::MAX).is_none());
    }
}
