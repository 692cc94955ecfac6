//! The operations of a recorded trace, at its pace or another.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::stream::{Direction, Op};

/// What a recorded operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceAction {
    /// Moves data from the target.
    Read,
    /// Moves data to the target.
    Write,
    /// Discards a range.
    Trim,
    /// Makes what was written durable; offset and length mean nothing.
    Flush,
}

/// One recorded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceOp {
    /// When it was issued, in nanoseconds since the trace began.
    pub time_ns: u64,
    /// Where, in bytes from the target's start.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// What it does.
    pub action: TraceAction,
    /// The line of the trace's file that it comes from, from 1; 0 where there was none.
    pub line: u32,
}

impl TraceOp {
    /// The operation as a worker issues it.
    #[must_use]
    pub fn op(&self) -> Op {
        let direction = match self.action {
            TraceAction::Read => Direction::Read,
            TraceAction::Write => Direction::Write,
            TraceAction::Trim => Direction::Trim,
            TraceAction::Flush => return Op { direction: Direction::Flush, offset: 0, len: 0, line: 0 },
        };
        Op { direction, offset: self.offset, len: self.len, line: 0 }
    }

    /// Where it ends, in bytes from the target's start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len.into())
    }
}

/// How fast a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// So many times as fast as it was recorded; 1 is the recorded pace.
    Speed(f64),
    /// Everything is due at once: only the outstanding I/Os limit it.
    Max,
}

impl Pace {
    /// When something recorded at `time_ns` is due, in nanoseconds since the replay began.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    #[must_use]
    pub fn due_ns(self, time_ns: u64) -> u64 {
        match self {
            Self::Max => 0,
            Self::Speed(1.0) => time_ns,
            // `as` saturates: a due time beyond 584 years is as good as never.
            Self::Speed(speed) => (time_ns as f64 / speed) as u64,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Speed(1.0) => f.write_str("recorded"),
            Self::Speed(speed) => write!(f, "{speed}x"),
        }
    }
}

/// A pace that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is no pace: write recorded, max, or a speed such as 0.5x or 10x (0.001x to 1000x)")]
pub struct PaceError {
    text: String,
}

impl std::str::FromStr for Pace {
    type Err = PaceError;

    /// Reads `recorded`, `max` or a speed such as `0.5x`.
    fn from_str(text: &str) -> Result<Self, PaceError> {
        match text {
            "recorded" => Ok(Self::Speed(1.0)),
            "max" => Ok(Self::Max),
            _ => text
                .strip_suffix('x')
                .and_then(|number| number.parse().ok())
                .filter(|speed| (0.001..=1000.0).contains(speed))
                .map(Self::Speed)
                .ok_or_else(|| PaceError { text: text.to_owned() }),
        }
    }
}

/// One worker's part of a trace: every n-th operation, with the time at which it is due. Nothing is
/// due before what came before it in the trace.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    ops: std::iter::StepBy<std::iter::Skip<std::slice::Iter<'a, TraceOp>>>,
    pace: Pace,
    due_ns: u64,
}

impl<'a> Replay<'a> {
    /// The part of worker number `worker` of `workers`, which must be 1 or more.
    #[must_use]
    pub fn new(ops: &'a [TraceOp], pace: Pace, worker: u32, workers: u32) -> Self {
        Self { ops: ops.iter().skip(worker as usize).step_by(workers.max(1) as usize), pace, due_ns: 0 }
    }
}

impl<'a> Iterator for Replay<'a> {
    /// When the operation is due, in nanoseconds after replay began, and the operation.
    type Item = (u64, &'a TraceOp);

    fn next(&mut self) -> Option<Self::Item> {
        let op = self.ops.next()?;
        self.due_ns = self.due_ns.max(self.pace.due_ns(op.time_ns));
        Some((self.due_ns, op))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ops.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(times: &[u64]) -> Vec<TraceOp> {
        let op = |time_ns: &u64| TraceOp {
            time_ns: *time_ns,
            offset: *time_ns,
            len: 512,
            action: TraceAction::Read,
            line: 0,
        };
        times.iter().map(op).collect()
    }

    #[test]
    fn paces_are_read() {
        assert_eq!("recorded".parse(), Ok(Pace::Speed(1.0)));
        assert_eq!("0.5x".parse(), Ok(Pace::Speed(0.5)));
        assert_eq!("max".parse(), Ok(Pace::Max));
        assert_eq!(
            [Pace::Speed(1.0), Pace::Speed(0.5), Pace::Max].map(|p| p.to_string().parse()),
            [Ok(Pace::Speed(1.0)), Ok(Pace::Speed(0.5)), Ok(Pace::Max)]
        );
        for text in ["", "x", "0x", "-1x", "NaNx", "infx", "2"] {
            assert!(text.parse::<Pace>().is_err(), "{text}");
        }
    }

    #[test]
    fn half_the_speed_takes_twice_the_time() {
        let ops = trace(&[0, 100, 300]);
        let due = |pace| Replay::new(&ops, pace, 0, 1).map(|(due, _)| due).collect::<Vec<_>>();
        assert_eq!(due(Pace::Speed(1.0)), [0, 100, 300]);
        assert_eq!(due(Pace::Speed(0.5)), [0, 200, 600]);
        assert_eq!(due(Pace::Max), [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn workers_share_a_trace_without_loss(
            times in prop::collection::vec(any::<u64>(), 0..60),
            workers in 1u32..6,
            speed in 0.001..1000.0f64,
        ) {
            let ops = trace(&times);
            let mut seen: Vec<TraceOp> = Vec::new();
            for worker in 0..workers {
                let part: Vec<_> = Replay::new(&ops, Pace::Speed(speed), worker, workers).collect();
                prop_assert!(part.is_sorted_by_key(|(due, _)| *due));
                seen.extend(part.iter().map(|(_, op)| **op));
            }
            let key = |op: &TraceOp| op.time_ns;
            let mut expected = ops.clone();
            expected.sort_by_key(key);
            seen.sort_by_key(key);
            prop_assert_eq!(seen, expected);
        }
    }
}
