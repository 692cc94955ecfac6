//! A load's course: when it begins, when measuring ends, and what ended it before its time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use virtbench_engine::monotonic_ns;
use virtbench_units::Window;

/// The course of a load, which its threads share with the one that waits for them. `F` is a fault that ends it.
#[derive(Debug)]
pub struct LoadCourse<F> {
    ramp_up_ns: u64,
    time_ns: u64,
    /// When users begin, in nanoseconds; zero until all are connected.
    begin_ns: AtomicU64,
    /// When measuring ends, in nanoseconds.
    end_ns: AtomicU64,
    /// Whether nothing is to begin.
    cancelled: AtomicBool,
    fatal: Mutex<Option<F>>,
}

impl<F: Clone> LoadCourse<F> {
    /// A load that has not begun, measured for `time_ns` after `ramp_up_ns`.
    #[must_use]
    pub fn new(ramp_up_ns: u64, time_ns: u64) -> Self {
        Self {
            ramp_up_ns,
            time_ns,
            begin_ns: AtomicU64::new(0),
            end_ns: AtomicU64::new(u64::MAX),
            cancelled: AtomicBool::new(false),
            fatal: Mutex::new(None),
        }
    }

    /// Lets users begin at this moment of the monotonic clock, which may lie ahead.
    pub fn begin(&self, at_ns: u64) {
        let end_ns = at_ns.saturating_add(self.ramp_up_ns).saturating_add(self.time_ns);
        self.end_ns.fetch_min(end_ns, Ordering::SeqCst);
        self.begin_ns.store(at_ns.max(1), Ordering::SeqCst);
    }

    /// When users begin, once that is known.
    pub fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::SeqCst)).filter(|begin| *begin > 0)
    }

    /// Ends everything at once, so that nobody begins.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.end_now();
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

    /// When operations count.
    pub fn window(&self) -> Window {
        let start_ns = self.begin_ns.load(Ordering::SeqCst).saturating_add(self.ramp_up_ns);
        Window { start_ns, end_ns: self.end_ns.load(Ordering::SeqCst) }
    }

    /// How long is measured, in nanoseconds; less than was asked for once something has ended it.
    pub fn measured_ns(&self) -> u64 {
        let Window { start_ns, end_ns } = self.window();
        end_ns.saturating_sub(start_ns)
    }

    /// Ends measuring because of a fault; the first one stays.
    pub fn fail(&self, fault: F) {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.end_now();
    }

    /// The fault that ended measuring.
    pub fn fatal(&self) -> Option<F> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_has_its_window_until_a_fault_ends_it() {
        let course = LoadCourse::new(1_000, 1_000_000_000_000);
        assert_eq!((course.begin_ns(), course.has_ended()), (None, false));
        let now = monotonic_ns();
        course.begin(now);
        assert_eq!(course.window(), Window { start_ns: now + 1_000, end_ns: now + 1_000_000_001_000 });
        course.fail("first");
        course.fail("second");
        assert_eq!((course.fatal(), course.has_ended()), (Some("first"), true));
        assert!(course.measured_ns() < 1_000_000_000_000 && !course.is_cancelled());
    }

    #[test]
    fn what_is_ended_before_it_begins_stays_ended() {
        let course: LoadCourse<()> = LoadCourse::new(0, u64::MAX);
        course.cancel();
        course.begin(monotonic_ns());
        assert_eq!((course.has_ended(), course.measured_ns(), course.is_cancelled()), (true, 0, true));
    }
}
