//! One worker's part of a recorded trace: what is due, and what has been started.

use std::iter::Peekable;

use virtbench_workload::{Op, Pace, Recording, Replay};

use crate::open_loop::{Moments, OpenLoopCounts};

/// What a worker that replays does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start this operation, whose latency counts from the moment given.
    Start(Op, u64),
    /// Nothing is due before this moment.
    Wait(u64),
    /// Every operation has been started.
    Over,
}

/// The result of a worker's part of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplayCounts {
    /// Operations that were started.
    pub started: u64,
    /// Whether all were.
    pub whole: bool,
    /// The result of the replay as an open loop, where it keeps a pace.
    pub open_loop: Option<OpenLoopCounts>,
}

/// The recorded operations of one worker, in order.
///
/// At a pace it is an open loop: what is due waits for a free slot, and that is part of its latency. No
/// queue is kept, for what is due lies between two places of the trace; nothing is dropped, for the trace
/// bounds how much can wait, and a replay with gaps would be of another trace.
pub(crate) struct ReplayLoop<'a> {
    /// From the first operation not started.
    starts: Peekable<Replay<'a>>,
    /// From the first operation not due.
    dues: Peekable<Replay<'a>>,
    paced: bool,
    moments: Moments,
    started: u64,
    backlog: u64,
    /// Whether the backlog at the end has been noted.
    all_due: bool,
    counts: OpenLoopCounts,
}

impl<'a> ReplayLoop<'a> {
    /// The part of worker number `worker` of `workers`.
    pub(crate) fn new(recording: &'a Recording, worker: u32, workers: u32, moments: Moments) -> Self {
        let part = Replay::new(recording.ops(), recording.pace, worker, workers);
        Self {
            starts: part.clone().peekable(),
            dues: part.peekable(),
            paced: recording.pace != Pace::Max,
            moments,
            started: 0,
            backlog: 0,
            all_due: false,
            counts: OpenLoopCounts::default(),
        }
    }

    /// Whether operations are due at moments of their own.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }

    /// Whether every operation has been started.
    #[inline]
    pub(crate) fn is_over(&mut self) -> bool {
        self.starts.peek().is_none()
    }

    /// Counts what has become due by now. Bounded by the trace.
    pub(crate) fn collect(&mut self, now_ns: u64) {
        let Moments { start_ns, begin_ns, end_ns } = self.moments;
        let due = |due_ns: u64| start_ns.saturating_add(due_ns);
        let is_due = |due_ns: u64| due(due_ns) <= now_ns && due(due_ns) < end_ns;
        while let Some((due_ns, _)) = self.dues.next_if(|(due_ns, _)| self.paced && is_due(*due_ns)) {
            self.backlog += 1;
            self.counts.offered += u64::from(due(due_ns) >= begin_ns);
        }
    }

    /// What to do at this moment.
    pub(crate) fn next(&mut self, now_ns: u64) -> Next {
        let Some((due_ns, op)) = self.starts.peek() else { return Next::Over };
        let intended_ns = self.moments.start_ns.saturating_add(*due_ns);
        match self.paced {
            false => Next::Start(op.op(), now_ns),
            true if intended_ns <= now_ns => Next::Start(op.op(), intended_ns),
            true => Next::Wait(intended_ns),
        }
    }

    /// The operation has been started.
    pub(crate) fn started(&mut self) {
        self.starts.next();
        self.started += 1;
        self.backlog = self.backlog.saturating_sub(1);
    }

    /// Notes how many are left when no more can be started.
    pub(crate) fn note_backlog(&mut self) {
        self.counts.backlog_max = self.counts.backlog_max.max(self.backlog);
        if !self.all_due {
            self.all_due = self.dues.peek().is_none();
            self.counts.backlog_end = self.backlog;
        }
    }

    /// The result of it by the time the worker stopped. The backlog at the end is that at the moment when
    /// the last operation became due, if it did: what waited then shows whether the target kept up, though
    /// it was started later.
    ///
    /// `unstarted` is told when each operation was due that has not started.
    pub(crate) fn finish(
        mut self,
        stopped_ns: u64,
        unstarted: impl FnOnce(&mut dyn Iterator<Item = u64>),
    ) -> ReplayCounts {
        self.collect(stopped_ns);
        self.note_backlog();
        let counts = self.so_far();
        let waiting = usize::try_from(self.backlog).unwrap_or(usize::MAX);
        let start_ns = self.moments.start_ns;
        unstarted(&mut self.starts.by_ref().take(waiting).map(|(due_ns, _)| start_ns.saturating_add(due_ns)));
        counts
    }

    /// What it has come to by now.
    pub(crate) fn so_far(&mut self) -> ReplayCounts {
        ReplayCounts {
            started: self.started,
            whole: self.is_over(),
            open_loop: self.paced.then_some(self.counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::{TraceAction, TraceOp};

    fn recording(pace: Pace, times: &[u64]) -> Recording {
        let op = |time_ns: &u64| TraceOp {
            time_ns: *time_ns,
            offset: 0,
            len: 512,
            action: TraceAction::Read,
            line: 1,
        };
        Recording::new("t".into(), pace, times.iter().map(op).collect())
    }

    const MOMENTS: Moments = Moments { start_ns: 1_000, begin_ns: 1_100, end_ns: 100_000 };

    #[test]
    fn what_is_due_waits_in_order_and_keeps_its_intended_start() {
        let recording = recording(Pace::Speed(1.0), &[5, 105, 205, 305]);
        let mut replay = ReplayLoop::new(&recording, 0, 1, MOMENTS);
        replay.collect(1_200);
        for intended_ns in [1_000, 1_100, 1_200] {
            assert!(matches!(replay.next(1_200), Next::Start(_, at) if at == intended_ns));
            replay.started();
        }
        assert_eq!(replay.next(1_200), Next::Wait(1_300));
        let counts = replay.finish(1_250, |due| assert_eq!(due.count(), 0));
        assert_eq!((counts.started, counts.whole), (3, false));
        // The first was due before measuring began, the last never.
        assert_eq!(counts.open_loop.map(|open| (open.offered, open.backlog_end)), Some((2, 0)));
    }

    #[test]
    fn a_target_that_lags_behind_at_the_end_of_the_trace_is_seen_to() {
        let recording = recording(Pace::Speed(2.0), &[0, 200, 400, 600]);
        let mut replay = ReplayLoop::new(&recording, 0, 1, MOMENTS);
        replay.collect(1_300);
        replay.started();
        replay.note_backlog();
        for _ in 0..3 {
            replay.started();
        }
        assert_eq!(replay.next(1_300), Next::Over);
        let counts = replay.finish(1_400, |_| ());
        let open = counts.open_loop.unwrap();
        assert_eq!((counts.whole, open.offered, open.backlog_end, open.dropped), (true, 3, 3, 0));
    }

    #[test]
    fn without_a_pace_nothing_waits() {
        let recording = recording(Pace::Max, &[0, 1_000_000]);
        let mut replay = ReplayLoop::new(&recording, 0, 1, MOMENTS);
        replay.collect(2_000);
        assert!(matches!(replay.next(2_000), Next::Start(_, 2_000)));
        replay.started();
        replay.started();
        let counts = replay.finish(3_000, |_| ());
        assert_eq!((counts.started, counts.whole, counts.open_loop.is_none()), (2, true, true));
    }
}
