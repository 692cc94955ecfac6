//! Divides the time of an operation among its phases.

use std::time::{Duration, Instant};

use virtbench_record::{Phase, Phases};

/// Runs from its beginning on; each lap belongs to one phase.
#[derive(Debug)]
pub struct Stopwatch {
    lap: Instant,
    phases: Phases,
}

impl Stopwatch {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { lap: Instant::now(), phases: Phases::default() }
    }

    /// The time since the last lap goes to this phase.
    pub fn lap(&mut self, phase: Phase) {
        let now = Instant::now();
        self.phases.add(phase, nanoseconds(now - self.lap));
        self.lap = now;
    }

    /// The time since the last lap, as far as it lies before this moment, goes to this phase.
    pub fn lap_until(&mut self, phase: Phase, at: Instant) {
        let at = at.clamp(self.lap, Instant::now());
        self.phases.add(phase, nanoseconds(at - self.lap));
        self.lap = at;
    }

    /// The time since the last lap goes to `running`, as far as the platform's own clock says so, and before it to
    /// `queued`; what is left goes to `done`. Only lengths are taken from the platform's clock.
    pub fn lap_of_task(&mut self, queued: Duration, running: Duration) {
        let now = Instant::now();
        let whole = now - self.lap;
        let running = running.min(whole);
        let queued = queued.min(whole - running);
        self.phases.add(Phase::Queued, nanoseconds(queued));
        self.phases.add(Phase::Running, nanoseconds(running));
        self.phases.add(Phase::Done, nanoseconds(whole - running - queued));
        self.lap = now;
    }

    /// The phases so far.
    #[must_use]
    pub fn phases(&self) -> Phases {
        self.phases
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_divides_what_was_waited_and_no_more() {
        let mut watch = Stopwatch::start();
        let (before, begun) = (watch.lap - Duration::from_secs(1), watch.lap);
        std::thread::sleep(Duration::from_millis(20));
        watch.lap_until(Phase::Accepted, before);
        watch.lap_until(Phase::Running, begun + Duration::from_millis(5));
        watch.lap_until(Phase::Done, begun + Duration::from_secs(5));
        let phases = watch.phases();
        assert_eq!((phases.get(Phase::Accepted), phases.get(Phase::Running)), (Some(0), Some(5_000_000)));
        let done = phases.get(Phase::Done).expect("it was added");
        assert!((15_000_000..5_000_000_000).contains(&done), "{phases:?}");
    }

    #[test]
    fn a_tasks_own_times_never_exceed_what_was_waited() {
        let mut watch = Stopwatch::start();
        watch.lap(Phase::Client);
        watch.lap_of_task(Duration::from_secs(5), Duration::from_secs(7));
        let phases = watch.phases();
        assert_eq!((phases.get(Phase::Queued), phases.get(Phase::Done)), (Some(0), Some(0)));
        assert!(phases.total_ns() < 1_000_000_000 && phases.get(Phase::Seen).is_none(), "{phases:?}");
    }
}
