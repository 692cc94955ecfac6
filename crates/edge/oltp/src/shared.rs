//! What the driver's threads and whoever waits for them have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_engine::monotonic_ns;
use virtbench_record::OltpPlan;

use crate::address::Connect;
use crate::fault::Fault;
use crate::population::Population;
use crate::tally::{Tally, Window};

/// A load that runs.
pub struct Shared<'a> {
    /// The load.
    pub plan: &'a OltpPlan,
    /// Where to.
    pub connect: &'a Connect,
    /// On what.
    pub population: Population,
    /// When users begin, in nanoseconds; zero until all are connected.
    begin_ns: AtomicU64,
    /// When measuring ends, in nanoseconds.
    end_ns: AtomicU64,
    /// Whether nothing is to begin.
    cancelled: AtomicBool,
    fatal: Mutex<Option<Fault>>,
    tallies: Vec<Mutex<Tally>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Shared<'a> {
    /// A load that has not begun.
    pub fn new(plan: &'a OltpPlan, connect: &'a Connect, population: Population) -> Self {
        Self {
            plan,
            connect,
            population,
            begin_ns: AtomicU64::new(0),
            end_ns: AtomicU64::new(u64::MAX),
            cancelled: AtomicBool::new(false),
            fatal: Mutex::new(None),
            tallies: (0..plan.threads).map(|_| Mutex::new(Tally::default())).collect(),
        }
    }

    /// Lets users begin at this moment.
    pub fn begin(&self, at_ns: u64) {
        self.end_ns.store(at_ns + self.plan.ramp_up_ns + self.plan.time_ns, Ordering::SeqCst);
        self.begin_ns.store(at_ns, Ordering::SeqCst);
    }

    /// When users begin, once that is known.
    pub fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::SeqCst)).filter(|begin| *begin > 0)
    }

    /// Ends everything at once.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.end_ns.fetch_min(monotonic_ns(), Ordering::SeqCst);
    }

    /// Whether nothing is to begin.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Ends measuring now, if it has not ended.
    pub fn end_now(&self) {
        self.end_ns.fetch_min(monotonic_ns(), Ordering::SeqCst);
    }

    /// Whether measuring has ended.
    pub fn has_ended(&self) -> bool {
        monotonic_ns() >= self.end_ns.load(Ordering::SeqCst)
    }

    /// When transactions count.
    pub fn window(&self) -> Window {
        let start_ns = self.begin_ns.load(Ordering::SeqCst) + self.plan.ramp_up_ns;
        Window { start_ns, end_ns: self.end_ns.load(Ordering::SeqCst) }
    }

    /// Ends measuring because of a fault; the first one stays.
    pub fn fail(&self, fault: Fault) {
        held(&self.fatal).get_or_insert(fault);
        self.end_now();
    }

    /// The fault that ended measuring.
    pub fn fatal(&self) -> Option<Fault> {
        held(&self.fatal).clone()
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
