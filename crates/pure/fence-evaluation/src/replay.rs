//! Recorded traces, one a machine, on a system: alone against in company.

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;
use virtbench_fence::predict::Predictors;
use virtbench_workload::{Pace, TraceAction, TraceOp};

use crate::case::{Compared, Runs};
use crate::pace::Bench;
use crate::settings::Settings;
use crate::system::{FREE_TARGET, MAX_REQUEST_BYTES, System};
use virtbench_fence_sim::client::Client;
use virtbench_fence_sim::{Span, WorldError};

/// The fence's unit, and that of its cache.
const BLOCK: u64 = 4096;
/// Operations of a trace that are in flight at once; later ones wait, and their waiting counts.
const OUTSTANDING: u32 = 1024;
/// Time after the last operation is due in which those that wait may still complete.
const DRAIN_NS: u64 = 1_000_000_000;

/// Traces, one for each machine.
#[derive(Debug, Clone)]
pub struct Replays {
    machines: Vec<Machine>,
    pace: Pace,
}

#[derive(Debug, Clone)]
struct Machine {
    ops: Arc<[TraceOp]>,
    /// Distinct blocks of 4 KiB that it touches.
    blocks: u64,
}

/// What one machine did.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Requests that it issues.
    pub requests: usize,
    /// Alone and in company.
    pub figures: Compared,
}

/// Traces that cannot be replayed.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ReplayError {
    /// No trace, or more than a rotation has places for.
    #[error("{0} traces: give 1 to 64, one for each machine")]
    Machines(usize),
    /// At no pace nothing is due at any time.
    #[error("as fast as possible each machine disturbs all others: give a speed such as 1x")]
    NoPace,
    /// Nothing is read or written.
    #[error("trace {0} neither reads nor writes")]
    Nothing(usize),
    /// An operation lies beyond the virtual disk.
    #[error(
        "trace {machine}, line {line}: the operation ends at byte {end} of a virtual disk of {disk_bytes} bytes: \
         raise disk_bytes, and the capacity of both devices, in the configuration"
    )]
    Beyond {
        /// Whose trace, from 0.
        machine: usize,
        line: u32,
        /// Where the operation ends.
        end: u64,
        /// The disk's size.
        disk_bytes: u64,
    },
    /// The world cannot be, or broke.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Nothing completed.
    #[error("a machine completed nothing: its disks cannot keep up at all; give a lower speed")]
    Stuck,
}

impl Replays {
    /// The most machines.
    pub const MOST: usize = 64;

    /// Traces by time, one for each machine. What they read and write is widened to whole blocks and cut into
    /// requests as long as a guest's; flushes and trims cost the modelled disks nothing and are left out.
    ///
    /// # Errors
    /// None or too many, no pace, or one without a read or write.
    pub fn new(traces: &[Vec<TraceOp>], pace: Pace) -> Result<Self, ReplayError> {
        if traces.is_empty() || traces.len() > Self::MOST {
            return Err(ReplayError::Machines(traces.len()));
        }
        if pace == Pace::Max {
            return Err(ReplayError::NoPace);
        }
        let machines = traces.iter().enumerate().map(|(place, ops)| {
            let ops: Vec<TraceOp> = ops.iter().flat_map(requests).collect();
            let touched: BTreeSet<u64> = ops.iter().flat_map(blocks).collect();
            if ops.is_empty() {
                return Err(ReplayError::Nothing(place));
            }
            Ok(Machine { ops: ops.into(), blocks: touched.len() as u64 })
        });
        Ok(Self { machines: machines.collect::<Result<_, _>>()?, pace })
    }

    /// Replays on a system, with a seed for each replication: where the platters stand is chance. Caches begin
    /// empty; each is sized for its system's share of the blocks that a machine touches on average.
    ///
    /// # Errors
    /// A trace that goes beyond its disk; a world that cannot be or broke.
    pub fn measure(
        &self,
        system: &System,
        settings: &Settings,
        predictors: &Predictors,
    ) -> Result<Vec<Replayed>, ReplayError> {
        let vms = self.machines.len();
        self.check_ends(system.disk_bytes(settings, vms))?;
        let last = self.machines.iter().filter_map(|machine| machine.ops.last()).map(|op| op.time_ns).max();
        let measure_ns = self.pace.due_ns(last.unwrap_or(0)).saturating_add(DRAIN_NS);
        let span = Span { warm_up_ns: 0, measure_ns };
        let bench = Bench { system, settings, predictors, cache_blocks: self.cache_blocks(system), span };
        let all: Vec<Client> = self.machines.iter().map(|machine| self.client(machine)).collect();
        let runs = Runs::perform(&bench, &all)?;
        let replayed = self.machines.iter().zip(runs.compare(settings.seed));
        replayed
            .map(|(machine, figures)| Some(Replayed { requests: machine.ops.len(), figures: figures? }))
            .collect::<Option<Vec<Replayed>>>()
            .ok_or(ReplayError::Stuck)
    }

    fn check_ends(&self, disk_bytes: u64) -> Result<(), ReplayError> {
        for (place, machine) in self.machines.iter().enumerate() {
            let too_far = machine.ops.iter().find(|op| end(op) > disk_bytes);
            if let Some(op) = too_far {
                return Err(ReplayError::Beyond { machine: place, line: op.line, end: end(op), disk_bytes });
            }
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    fn cache_blocks(&self, system: &System) -> u32 {
        let Some(percent) = system.hit_percent() else { return 0 };
        let touched: u64 = self.machines.iter().map(|machine| machine.blocks).sum();
        (touched as f64 / self.machines.len() as f64 * percent / 100.0) as u32 + 2 * FREE_TARGET
    }

    fn client(&self, machine: &Machine) -> Client {
        Client::Trace { ops: Arc::clone(&machine.ops), pace: self.pace, outstanding: OUTSTANDING }
    }
}

fn end(op: &TraceOp) -> u64 {
    op.offset.saturating_add(u64::from(op.len))
}

fn blocks(op: &TraceOp) -> std::ops::Range<u64> {
    op.offset / BLOCK..end(op).div_ceil(BLOCK)
}

/// What a guest's block layer makes of an operation.
#[allow(clippy::cast_possible_truncation)] // at most MAX_REQUEST_BYTES
fn requests(op: &TraceOp) -> Vec<TraceOp> {
    let moves = matches!(op.action, TraceAction::Read | TraceAction::Write) && op.len > 0;
    let span = if moves { blocks(op) } else { 0..0 };
    let whole = span.start * BLOCK..span.end.saturating_mul(BLOCK);
    (whole.start..whole.end)
        .step_by(MAX_REQUEST_BYTES as usize)
        .map(|offset| TraceOp {
            offset,
            len: (whole.end - offset).min(u64::from(MAX_REQUEST_BYTES)) as u32,
            ..*op
        })
        .collect()
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
