//! A trace as a load: what it asks of a target, and whether the target has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::format_bytes;

use crate::access::{AccessLine, AccessSpec};
use crate::replay::{Pace, TraceAction, TraceOp};

/// The size of a buffer where a trace moves no data, in bytes.
const NO_DATA_BYTES: u64 = 512;

/// A trace that cannot be replayed on this target.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReplayError {
    /// An operation lies beyond the region.
    #[error("{name}, line {line}: the operation ends at {end}, beyond the {} ({region_bytes} bytes) in use: \
             raise `region_bytes` or choose a larger target ({} at least)",
        format_bytes(*region_bytes), format_bytes(*extent_bytes))]
    BeyondEnd {
        /// The trace.
        name: String,
        /// Line of its file.
        line: u32,
        /// Where the operation ends, in bytes.
        end: u64,
        /// The region, in bytes.
        region_bytes: u64,
        /// What the whole trace needs, in bytes.
        extent_bytes: u64,
    },
    /// An operation begins or ends within a block.
    #[error(
        "{name}, line {line}: offset {offset} and size {len} are no multiples of the target's {unit_bytes} bytes: \
             replay on a file with `direct` = false, or cut the trace to whole blocks"
    )]
    Unaligned {
        /// The trace.
        name: String,
        /// Line of its file.
        line: u32,
        /// Where the operation begins, in bytes.
        offset: u64,
        /// Its length, in bytes.
        len: u32,
        /// What the target works in multiples of, in bytes.
        unit_bytes: u64,
    },
    /// Only the description is here.
    #[error(
        "{name}: only the trace's description is here, not its {operations} operations: traces are \
             replayed by `virtbench load` on this machine, not in studies or guests"
    )]
    Absent {
        /// The trace.
        name: String,
        /// How many operations there should be.
        operations: u64,
    },
}

/// A recorded trace and how it is replayed.
///
/// Its operations stay in this process: what is written of a recording describes it, and what is
/// read back can be reported but not replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recording {
    /// The file it was read from.
    pub name: String,
    /// How fast it is replayed.
    pub pace: Pace,
    /// Its operations.
    pub operations: u64,
    /// Flushes among them.
    pub flushes: u64,
    /// From its first operation to its last, as recorded, in nanoseconds.
    pub length_ns: u64,
    /// The end of its farthest operation: the least a target must have, in bytes.
    pub extent_bytes: u64,
    #[serde(skip)]
    ops: Arc<[TraceOp]>,
}

impl Recording {
    /// A recording of `ops`, which must be in the order of time. Time counts from the first of them.
    #[must_use]
    pub fn new(name: String, pace: Pace, mut ops: Vec<TraceOp>) -> Self {
        let first_ns = ops.first().map_or(0, |op| op.time_ns);
        ops.iter_mut().for_each(|op| op.time_ns = op.time_ns.saturating_sub(first_ns));
        Self {
            name,
            pace,
            operations: ops.len() as u64,
            flushes: ops.iter().filter(|op| op.action == TraceAction::Flush).count() as u64,
            length_ns: ops.last().map_or(0, |op| op.time_ns),
            extent_bytes: ops.iter().map(TraceOp::end).max().unwrap_or(0),
            ops: ops.into(),
        }
    }

    /// The operations.
    #[must_use]
    pub fn ops(&self) -> &[TraceOp] {
        &self.ops
    }

    /// When the last operation is due, in nanoseconds after the first; nothing at [`Pace::Max`].
    #[must_use]
    pub fn paced_length_ns(&self) -> Option<u64> {
        (self.pace != Pace::Max).then(|| self.pace.due_ns(self.length_ns))
    }

    /// The trace as the line of a mix: its largest read or write, the shares of reads, trims and seeks, and
    /// the largest alignment that all of its operations keep. Buffers are sized, and targets are judged, by it.
    #[must_use]
    pub fn access(&self) -> AccessSpec {
        let [mut reads, mut trims, mut seeks, mut total] = [0u64; 4];
        let [mut largest_bytes, mut align_bytes, mut position] = [0u64; 3];
        for op in self.ops.iter().filter(|op| op.action != TraceAction::Flush) {
            total += 1;
            reads += u64::from(op.action == TraceAction::Read);
            trims += u64::from(op.action == TraceAction::Trim);
            seeks += u64::from(op.offset != position);
            position = op.end();
            align_bytes = [op.offset, op.len.into()].into_iter().fold(align_bytes, common_divisor);
            if op.action != TraceAction::Trim {
                largest_bytes = largest_bytes.max(op.len.into());
            }
        }
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        // Flushes alone change nothing that a target would have to be guarded against.
        let read_percent = if total == 0 { 100.0 } else { percent(reads, total) };
        AccessSpec::single(AccessLine {
            align_bytes: align_bytes.max(1),
            trim_percent: percent(trims, total - reads),
            ..AccessLine::new(largest_bytes.max(NO_DATA_BYTES), read_percent, percent(seeks, total))
        })
    }

    /// Checks that the operations are here and inside the region.
    pub(crate) fn check_region(&self, region_bytes: u64) -> Result<(), ReplayError> {
        let Self { operations, extent_bytes, .. } = *self;
        if self.ops.is_empty() {
            return Err(ReplayError::Absent { name: self.name.clone(), operations });
        }
        let beyond = |op: &&TraceOp| op.end() > region_bytes;
        match self.ops.iter().find(beyond).filter(|_| extent_bytes > region_bytes) {
            None => Ok(()),
            Some(op) => Err(ReplayError::BeyondEnd {
                name: self.name.clone(),
                line: op.line,
                end: op.end(),
                region_bytes,
                extent_bytes,
            }),
        }
    }

    /// Checks that every operation begins and ends at a multiple of `unit_bytes`.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check_alignment(&self, unit_bytes: u64) -> Result<(), ReplayError> {
        let aligned = |op: &TraceOp| {
            op.offset.is_multiple_of(unit_bytes) && u64::from(op.len).is_multiple_of(unit_bytes)
        };
        match self.ops.iter().find(|op| !aligned(op)) {
            None => Ok(()),
            Some(&TraceOp { offset, len, line, .. }) => {
                Err(ReplayError::Unaligned { name: self.name.clone(), line, offset, len, unit_bytes })
            }
        }
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(time_ns: u64, offset: u64, len: u32, action: TraceAction) -> TraceOp {
        TraceOp { time_ns, offset, len, action, line: u32::try_from(time_ns).unwrap() }
    }

    fn recording() -> Recording {
        let ops = vec![
            op(10, 0, 4096, TraceAction::Read),
            op(20, 4096, 1024, TraceAction::Write),
            op(30, 8192, 512, TraceAction::Trim),
            op(40, 0, 0, TraceAction::Flush),
            op(50, 8704, 4096, TraceAction::Read),
        ];
        Recording::new("t".into(), Pace::Speed(2.0), ops)
    }

    #[test]
    fn a_recording_is_summed_up_as_a_line_of_a_mix() {
        let recording = recording();
        assert_eq!((recording.operations, recording.flushes, recording.extent_bytes), (5, 1, 12800));
        assert_eq!((recording.length_ns, recording.paced_length_ns()), (40, Some(20)));
        let line = &recording.access().lines[0];
        assert_eq!((line.size_bytes, line.align_bytes), (4096, 512));
        assert_eq!((line.read_percent, line.trim_percent, line.random_percent), (50.0, 50.0, 25.0));
        assert_eq!(recording.access().validate(), Ok(()));
    }

    #[test]
    fn what_moves_no_data_still_makes_a_mix() {
        for action in [TraceAction::Flush, TraceAction::Trim] {
            let len = if action == TraceAction::Trim { u32::MAX } else { 0 };
            let access = Recording::new("t".into(), Pace::Max, vec![op(0, 0, len, action)]).access();
            assert_eq!(access.validate(), Ok(()));
            assert_eq!(access.writes(), action == TraceAction::Trim);
        }
    }

    #[test]
    fn what_does_not_fit_names_its_line() {
        let recording = recording();
        assert_eq!(recording.check_region(12800), Ok(()));
        let beyond = recording.check_region(8192).unwrap_err().to_string();
        assert!(beyond.contains("line 30") && beyond.contains("`region_bytes`"), "{beyond}");
        assert_eq!(recording.check_alignment(512), Ok(()));
        let unaligned = recording.check_alignment(1024).unwrap_err().to_string();
        assert!(unaligned.contains("line 30") && unaligned.contains("`direct`"), "{unaligned}");
    }

    #[test]
    fn a_description_alone_cannot_be_replayed() {
        let text = serde_json::to_string(&recording()).unwrap();
        let read: Recording = serde_json::from_str(&text).unwrap();
        let error = read.check_region(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("guests") && error.contains("5 operations"), "{error}");
    }
}
