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
    fn a_tasks_own_times_never_exceed_what_was_waited() {
        let mut watch = Stopwatch::start();
        watch.lap(Phase::Client);
        watch.lap_of_task(Duration::from_secs(5), Duration::from_secs(7));
        let phases = watch.phases();
        assert_eq!((phases.get(Phase::Queued), phases.get(Phase::Done)), (Some(0), Some(0)));
        assert!(phases.total_ns() < 1_000_000_000 && phases.get(Phase::Seen).is_none(), "{phases:?}");
    }
}
