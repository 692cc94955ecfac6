//! How progress is told, and a stop heard of.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::runner::event::{Event, Observer};

/// It is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Whom to tell of progress, and who may ask to stop.
pub struct Progress<'a> {
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what happens.
    pub observer: &'a mut dyn Observer,
}

impl Progress<'_> {
    /// Says what is being done.
    pub fn doing(&mut self, what: &str) {
        self.observer.event(Event::Doing(what));
    }

    /// Says what a user would like to know.
    pub fn remark(&mut self, what: &str) {
        self.observer.event(Event::Remark(what));
    }

    /// So many measurements are done and so many left at most; where nobody knows, those planned stand, and one more.
    pub(crate) fn done(&mut self, done: u64, left: Option<u64>, planned: u64) {
        let total = left.map_or(planned.max(done + 1), |left| done + left);
        self.observer.event(Event::Done { done, total });
    }

    /// # Errors
    /// It is to stop.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}
