//! What the threads of a load share with the thread that waits for them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_record::UsersPlan;

use crate::course::LoadCourse;
use crate::service::Fault;
use crate::tally::Tally;

/// A load that runs.
pub(crate) struct Shared<'a> {
    /// What was asked for.
    pub(crate) plan: &'a UsersPlan,
    /// When it begins and ends.
    pub(crate) course: LoadCourse<Fault>,
    tallies: Vec<Mutex<Tally>>,
}

impl<'a> Shared<'a> {
    /// A load of so many kinds of operation that has not begun.
    pub(crate) fn new(plan: &'a UsersPlan, kinds: usize) -> Self {
        let tallies = (0..plan.threads).map(|_| Mutex::new(Tally::new(kinds)));
        Self { plan, course: LoadCourse::new(plan.ramp_up_ns, plan.time_ns), tallies: tallies.collect() }
    }

    /// What thread number `thread` counts.
    pub(crate) fn tally(&self, thread: u32) -> MutexGuard<'_, Tally> {
        self.tallies[thread as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all threads count.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = MutexGuard<'_, Tally>> {
        self.tallies.iter().map(|tally| tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
