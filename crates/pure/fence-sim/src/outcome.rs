//! What each virtual machine got.

use virtbench_units::{LatencyRecorder, LatencySummary};

/// One virtual machine over the measured span.
#[derive(Debug, Clone)]
pub struct VmOutcome {
    /// Accesses that completed.
    pub accesses: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Requests that the fence failed; a sound configuration has none.
    pub failed: u64,
    /// How long accesses took, by completion.
    pub response: LatencyRecorder,
    seconds: f64,
}

impl VmOutcome {
    pub(crate) fn new(measure_ns: u64) -> Self {
        Self {
            accesses: 0,
            bytes: 0,
            failed: 0,
            response: LatencyRecorder::new(),
            seconds: measure_ns as f64 / 1e9,
        }
    }

    /// Accesses a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.accesses as f64 / self.seconds
    }

    /// Mean response time in milliseconds; `None` where nothing completed.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        self.summary().map(|summary| summary.mean / 1e6)
    }

    /// Response times in nanoseconds; `None` where nothing completed.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        self.response.summary()
    }
}

impl Outcome {
    /// Share of the blocks read that the cache had; none without a cache.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let [hits, misses] = self.cache_reads;
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }
}

/// What happened in a world, warm-up and the filling of caches included. An event is one of these: each changes the
/// state of an I/O, of a device or of the fence, and is handled by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// Entries taken from the calendar: a thread's next access, a trace's operation, a device I/O that completes.
    pub calendar: u64,
    /// Deadlines of the fence.
    pub deadlines: u64,
    /// Requests submitted to the fence.
    pub submitted: u64,
    /// Device I/Os dispatched by the fence.
    pub dispatched: u64,
    /// Requests answered by the fence.
    pub answered: u64,
}

impl Events {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.calendar + self.deadlines + self.submitted + self.dispatched + self.answered
    }
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// By virtual machine, in the order of the fence's disks.
    pub vms: Vec<VmOutcome>,
    /// What happened.
    pub events: Events,
    /// Blocks read from the cache and past it, over the measured span.
    pub cache_reads: [u64; 2],
    /// Share of the whole run in which the slow and the fast device worked.
    pub busy: [f64; 2],
}
