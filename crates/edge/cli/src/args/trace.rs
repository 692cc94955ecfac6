//! A recorded trace instead of a load that is drawn.

use std::path::PathBuf;

use clap::Args;
use virtbench_workload::Pace;

/// Replaying a trace.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Replay a trace: a CSV of time, offset, size and operation, fio's iolog, what blkparse prints, or a trace of MSR Cambridge (see
    /// docs/formats.md).
    /// Without --time it is replayed to its end, without --ramp all of it is measured; of several workers
    /// each replays every n-th operation
    #[arg(long, value_name = "FILE", help_heading = "Trace", conflicts_with_all = [
        "bs", "read", "random", "think", "burst", "align", "mix", "rate", "distribution", "trim", "flush_every",
        "spec", "fio", "steady", "verify_only",
    ])]
    pub trace: Option<PathBuf>,
    /// How fast: recorded, a speed such as 2x or 0.5x (open loop: latency counts from the intended
    /// start), or max (closed loop: --outstanding I/Os are kept up)
    #[arg(long, value_name = "PACE", default_value = "recorded", requires = "trace", help_heading = "Trace")]
    pub pace: Pace,
}
