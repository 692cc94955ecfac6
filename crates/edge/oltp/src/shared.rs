//! What the driver's threads share with the thread that waits for them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_record::OltpPlan;
use virtbench_users::LoadCourse;

use crate::address::Connect;
use crate::fault::Fault;
use crate::population::Population;
use crate::schema::Schema;
use crate::tally::Tally;

/// A load that runs.
pub struct Shared<'a> {
    /// The load.
    pub plan: &'a OltpPlan,
    /// Where to.
    pub connect: &'a Connect,
    /// Where the tables are.
    pub schema: Schema,
    /// On what.
    pub population: Population,
    /// When it begins and ends.
    pub course: LoadCourse<Fault>,
    tallies: Vec<Mutex<Tally>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Shared<'a> {
    /// A load that has not begun.
    pub fn new(plan: &'a OltpPlan, connect: &'a Connect, (schema, population): (Schema, Population)) -> Self {
        Self {
            plan,
            connect,
            schema,
            population,
            course: LoadCourse::new(plan.ramp_up_ns, plan.time_ns),
            tallies: (0..plan.threads).map(|_| Mutex::new(Tally::default())).collect(),
        }
    }

    /// What thread number `thread` counts.
    pub fn tally(&self, thread: u32) -> MutexGuard<'_, Tally> {
        held(&self.tallies[thread as usize])
    }

    /// What all threads count.
    pub fn tallies(&self) -> impl Iterator<Item = MutexGuard<'_, Tally>> {
        self.tallies.iter().map(held)
    }
}
