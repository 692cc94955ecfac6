//! A whole load: the mix, how many operations at once, for how long.

use serde::{Deserialize, Serialize};

use crate::access::AccessSpec;
use crate::arrivals::{ArrivalTimes, Rate};
use crate::durability::{FlushKind, WriteSync};
use crate::load_error::{
    LoadError, MAX_BUFFER_BYTES, MAX_MAP_BYTES, MAX_OUTSTANDING, MAX_PATTERN_BYTES, MAX_PHASE_NS,
    MAX_POSITIONS, MAX_RATE, MAX_WORKERS,
};
use crate::pass::{Amount, Traversal};
use crate::recording::Recording;
use crate::stream::{RandomMap, Stream};

/// How operations are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Asynchronously through io_uring.
    #[default]
    IoUring,
    /// One blocking pread or pwrite at a time: a worker has one outstanding I/O whatever it asks for.
    Psync,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Content {
    /// How much of each block a compressor could save, in percent.
    pub compressible_percent: u8,
    /// How many of the blocks written repeat an earlier one, in percent.
    pub duplicate_percent: u8,
}

/// What else is asked of io_uring. A kernel or device that refuses is an error, not a silent no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UringOptions {
    /// A kernel thread polls for submissions (IORING_SETUP_SQPOLL).
    pub submission_polling: bool,
    /// Completions are polled for at the device (IORING_SETUP_IOPOLL).
    pub completion_polling: bool,
}

/// How often a worker reads the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockReading {
    /// Once for all operations that complete together, and that moment is when the next ones start.
    #[default]
    Batch,
    /// When each operation is handed over, and again when it is taken back.
    Each,
}

impl ClockReading {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A load as one machine applies it to one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSpec {
    /// The mix of operations.
    pub access: AccessSpec,
    /// Outstanding I/Os each worker keeps.
    pub outstanding: u32,
    /// Workers, each a thread with a stream and a position of its own.
    pub workers: u32,
    /// Ramp-up before measuring, in nanoseconds.
    pub ramp_ns: u64,
    /// Measuring time, in nanoseconds.
    pub time_ns: u64,
    /// Length of an interval of the series, in nanoseconds.
    pub interval_ns: u64,
    /// Bytes of the target that each worker uses, from `start_bytes` on.
    pub region_bytes: u64,
    /// Where the first worker's region begins, in bytes from the target's start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_bytes: u64,
    /// How much further on the region of each next worker begins, in bytes; 0 where they share one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub worker_step_bytes: u64,
    /// How operations reach the kernel.
    pub engine: EngineKind,
    /// Whether the page cache is bypassed (O_DIRECT).
    pub direct: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// Another one for when the operations of an open loop arrive, so that two loads arrive alike and do different things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_seed: Option<u64>,
    /// An open loop's rate; without it the loop is closed: outstanding I/Os are kept up.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// A flush after so many writes of a worker.
    #[serde(default)]
    pub flush_every: Option<u32>,
    /// What a flush makes durable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: FlushKind,
    /// Whether a flush follows when all else is done. It is not measured.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush_at_end: bool,
    /// What each write makes durable before it completes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_sync: WriteSync,
    /// What is written.
    #[serde(default)]
    pub content: Content,
    /// Bytes that are repeated instead of random ones; where a share is to be compressible, only that share
    /// is made of them. At most [`MAX_PATTERN_BYTES`](crate::MAX_PATTERN_BYTES).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pattern: Vec<u8>,
    /// Whether blocks carry seed, offset, sequence and checksum, and are checked when read.
    #[serde(default)]
    pub verify: bool,
    /// What else is asked of io_uring.
    #[serde(default)]
    pub uring: UringOptions,
    /// Processors that workers are pinned to, in turn; empty where they may run anywhere.
    #[serde(default)]
    pub processors: Vec<u32>,
    /// How long an operation may take before the target counts as stalled, in nanoseconds.
    #[serde(default = "default_timeout_ns")]
    pub timeout_ns: u64,
    /// How often workers read the clock.
    #[serde(default, skip_serializing_if = "ClockReading::is_default")]
    pub clock: ClockReading,
    /// What a worker does before it has done enough, where `time_ns` alone does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
    /// The order in which a worker goes over its region.
    #[serde(default, skip_serializing_if = "Traversal::is_plain")]
    pub traversal: Traversal,
    /// A trace to replay. `access` then only sums it up, and the load ends where the trace does if not
    /// at `time_ns` already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Recording>,
}

/// Half a minute: longer than any device's own retries that still end well.
pub const DEFAULT_TIMEOUT_NS: u64 = 30_000_000_000;

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
fn is_zero(value: &u64) -> bool {
    *value == 0
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_timeout_ns() -> u64 {
    DEFAULT_TIMEOUT_NS
}

impl LoadSpec {
    /// A closed loop of one worker on the whole of `region_bytes`, with everything else as it is
    /// when nobody says otherwise: 16 outstanding, 1 s ramp-up, 5 s measuring, direct I/O.
    #[must_use]
    pub fn new(access: AccessSpec, region_bytes: u64) -> Self {
        Self {
            access,
            outstanding: 16,
            workers: 1,
            ramp_ns: 1_000_000_000,
            time_ns: 5_000_000_000,
            interval_ns: 1_000_000_000,
            region_bytes,
            start_bytes: 0,
            worker_step_bytes: 0,
            engine: EngineKind::IoUring,
            direct: true,
            seed: 1,
            arrival_seed: None,
            rate: None,
            flush_every: None,
            flush: FlushKind::default(),
            flush_at_end: false,
            write_sync: WriteSync::default(),
            content: Content::default(),
            pattern: Vec::new(),
            verify: false,
            uring: UringOptions::default(),
            processors: Vec::new(),
            timeout_ns: DEFAULT_TIMEOUT_NS,
            clock: ClockReading::default(),
            amount: None,
            traversal: Traversal::default(),
            trace: None,
        }
    }
}

impl LoadSpec {
    /// The operations of one worker.
    #[must_use]
    pub fn stream(&self, worker: u32) -> Stream {
        Stream::new(&self.access, self.region_bytes, self.seed, worker, self.workers)
            .with_flush_every(self.flush_every)
            .with_start(self.start_bytes.saturating_add(self.worker_step_bytes.saturating_mul(worker.into())))
            .with_traversal(self.traversal, self.smallest_block_bytes())
            .with_amount(self.amount)
    }

    /// The smallest operation, in bytes: the block of [`Traversal::every_block_once`].
    fn smallest_block_bytes(&self) -> u64 {
        self.access.lines.iter().map(|line| line.size_bytes).min().unwrap_or(1)
    }

    /// Where the last byte used of the target ends, in bytes from its start.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        let last_step = self.worker_step_bytes.saturating_mul(u64::from(self.workers.saturating_sub(1)));
        self.start_bytes.saturating_add(last_step).saturating_add(self.region_bytes)
    }

    /// When the operations of one worker arrive, if the loop is open.
    #[must_use]
    pub fn arrivals(&self, worker: u32) -> Option<ArrivalTimes> {
        let seed = self.arrival_seed.unwrap_or(self.seed);
        self.rate.map(|rate| ArrivalTimes::new(rate, seed, worker, self.workers))
    }

    /// Whether any operation is a flush.
    #[must_use]
    pub fn flushes(&self) -> bool {
        self.flush_every.is_some() || self.trace.as_ref().is_some_and(|trace| trace.flushes > 0)
    }

    /// How long ramp-up and measuring will take together, in nanoseconds; nothing where that depends on
    /// the target alone.
    #[must_use]
    pub fn expected_ns(&self) -> Option<u64> {
        let longest_ns = self.ramp_ns.saturating_add(self.time_ns);
        match &self.trace {
            None if self.amount.is_some() => None,
            None => Some(longest_ns),
            Some(trace) => trace.paced_length_ns().map(|length_ns| length_ns.min(longest_ns)),
        }
    }

    /// Checks every field against its limits and against the others.
    ///
    /// # Errors
    /// The first thing found wrong, naming the field to change.
    pub fn validate(&self) -> Result<(), LoadError> {
        self.access.validate()?;
        let range = |field, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(LoadError::Range { field, value, least, most })
            }
        };
        range("`outstanding`", self.outstanding.into(), 1, MAX_OUTSTANDING.into())?;
        range("`workers`", self.workers.into(), 1, MAX_WORKERS.into())?;
        range("`ramp_ns`", self.ramp_ns, 0, MAX_PHASE_NS)?;
        range("`time_ns`", self.time_ns, 1_000_000, MAX_PHASE_NS)?;
        range("`interval_ns`", self.interval_ns, 1_000_000, MAX_PHASE_NS)?;
        if self.engine == EngineKind::Psync && self.outstanding > 1 {
            return Err(LoadError::PsyncOutstanding { outstanding: self.outstanding });
        }
        range("`timeout_ns`", self.timeout_ns, 1_000_000, MAX_PHASE_NS)?;
        range("`flush_every`", self.flush_every.unwrap_or(1).into(), 1, u32::MAX as u64 - 1)?;
        range("`pattern`", self.pattern.len() as u64, 0, MAX_PATTERN_BYTES as u64)?;
        range("`more_positions`", self.traversal.more_positions.into(), 0, MAX_POSITIONS.into())?;
        range("`compressible_percent`", self.content.compressible_percent.into(), 0, 100)?;
        range("`duplicate_percent`", self.content.duplicate_percent.into(), 0, 100)?;
        self.check_combinations()?;
        self.check_pass()?;
        let block_bytes = self.access.largest_block_bytes();
        let total_bytes =
            u64::from(self.workers) * u64::from(self.outstanding) * block_bytes.next_multiple_of(4096);
        if total_bytes > MAX_BUFFER_BYTES {
            return Err(LoadError::Memory {
                workers: self.workers,
                outstanding: self.outstanding,
                block_bytes,
                total_bytes,
            });
        }
        if let Some(trace) = &self.trace {
            trace.check_region(self.region_bytes)?;
        } else if self.region_bytes < self.access.longest_bytes() {
            let block_bytes = self.access.longest_bytes();
            return Err(LoadError::RegionTooSmall { region_bytes: self.region_bytes, block_bytes });
        }
        Ok(())
    }

    /// Where and how much: amounts that are something, regions that verification knows, maps that fit
    /// into memory.
    fn check_pass(&self) -> Result<(), LoadError> {
        let Self { amount, traversal, .. } = self;
        if amount.is_some_and(Amount::is_nothing) {
            return Err(LoadError::Nothing);
        }
        if self.trace.is_some() && (amount.is_some() || !traversal.is_plain()) {
            return Err(LoadError::Conflict {
                first: "`trace`",
                second: "an amount or an order of operations",
                why: "the trace alone says what is done; leave one out",
            });
        }
        if (self.verify || self.trace.is_some()) && self.end_bytes() != self.region_bytes {
            return Err(LoadError::Conflict {
                first: if self.verify { "`verify`" } else { "`trace`" },
                second: "a region that does not begin at the target's start",
                why: "its blocks are counted from there; leave one out",
            });
        }
        let grain_bytes = self.smallest_block_bytes();
        if traversal.every_block_once && self.access.lines.iter().any(|line| line.align_bytes != grain_bytes)
        {
            return Err(LoadError::MapAlignment { grain_bytes });
        }
        // A region that is not known yet is checked once it is.
        let map_bytes = RandomMap::memory_bytes(self.region_bytes, grain_bytes);
        let total_bytes = map_bytes.saturating_mul(self.workers.into());
        if traversal.every_block_once && self.region_bytes < u64::MAX && total_bytes > MAX_MAP_BYTES {
            return Err(LoadError::Map { total_bytes });
        }
        Ok(())
    }

    /// Fields that contradict one another.
    fn check_combinations(&self) -> Result<(), LoadError> {
        let conflict = |first, second, why| Err(LoadError::Conflict { first, second, why });
        if self.trace.is_some() && (self.rate.is_some() || self.flush_every.is_some()) {
            return conflict(
                "`trace`",
                "`rate` or `flush_every`",
                "the trace alone says what is done when; leave one out",
            );
        }
        if let Some(Rate { per_second, .. }) = self.rate
            && !(0.001..=MAX_RATE).contains(&per_second)
        {
            return Err(LoadError::Rate { per_second });
        }
        let length_ns = self.trace.as_ref().and_then(Recording::paced_length_ns);
        if length_ns.is_some_and(|length_ns| self.ramp_ns > length_ns) {
            return conflict(
                "`trace`",
                "`ramp_ns`",
                "the trace is over before measuring begins; lower the ramp-up",
            );
        }
        if self.verify && (self.content != Content::default() || !self.pattern.is_empty()) {
            return conflict(
                "`verify`",
                "`compressible_percent`, `duplicate_percent` or `pattern`",
                "blocks that are verified have contents of their own; leave one out",
            );
        }
        if self.verify
            && self.access.lines.iter().any(|line| line.size_bytes % 512 != 0 || line.align_bytes % 512 != 0)
        {
            return conflict(
                "`verify`",
                if self.trace.is_some() { "`trace`" } else { "`size_bytes` or `align_bytes`" },
                "each 512 bytes carry a header; choose multiples of 512",
            );
        }
        let uring = self.uring;
        if self.engine == EngineKind::Psync && uring != UringOptions::default() {
            return conflict(
                "`engine` psync",
                "`submission_polling` or `completion_polling`",
                "they are io_uring's; leave one out",
            );
        }
        if uring.completion_polling {
            if !self.direct {
                return conflict(
                    "`completion_polling`",
                    "`direct` = false",
                    "only direct I/O can be polled for; leave one out",
                );
            }
            if self.flushes() || self.access.lines.iter().any(|line| line.trim_percent > 0.0) {
                return conflict(
                    "`completion_polling`",
                    "`flush_every` or `trim_percent`",
                    "the kernel polls for reads and writes only; leave one out",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessLine, MAX_BLOCK_BYTES};
    use crate::arrivals::Arrivals;

    fn load() -> LoadSpec {
        LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 20)
    }

    #[test]
    fn a_sensible_load_is_accepted() {
        assert_eq!(load().validate(), Ok(()));
    }

    #[test]
    fn each_limit_names_its_field() {
        let message = |change: fn(&mut LoadSpec)| {
            let mut spec = load();
            change(&mut spec);
            spec.validate().unwrap_err().to_string()
        };
        assert!(message(|s| s.outstanding = 0).contains("`outstanding`"));
        assert!(message(|s| s.workers = 1000).contains("`workers`"));
        assert!(message(|s| s.time_ns = 0).contains("`time_ns`"));
        assert!(message(|s| s.region_bytes = 100).contains("`region_bytes`"));
        assert!(message(|s| s.timeout_ns = 0).contains("`timeout_ns`"));
        assert!(message(|s| s.flush_every = Some(0)).contains("`flush_every`"));
        assert!(message(|s| s.content.compressible_percent = 101).contains("`compressible_percent`"));
        assert!(message(|s| s.engine = EngineKind::Psync).contains("psync"));
        assert!(
            message(|s| {
                s.access.lines[0].size_bytes = MAX_BLOCK_BYTES;
                s.outstanding = 4096;
            })
            .contains("4096 outstanding")
        );
    }

    #[test]
    fn contradictions_name_both_fields() {
        let message = |change: fn(&mut LoadSpec)| {
            let mut spec = load();
            change(&mut spec);
            spec.validate().unwrap_err().to_string()
        };
        let rate = |per_second| Some(Rate { per_second, arrivals: Arrivals::Constant });
        for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e8] {
            assert!(LoadSpec { rate: rate(per_second), ..load() }.validate().is_err(), "{per_second}");
        }
        let polled = message(|s| {
            s.uring.completion_polling = true;
            s.flush_every = Some(3);
        });
        assert!(polled.contains("`completion_polling` and `flush_every`"), "{polled}");
        let verified = message(|s| {
            s.verify = true;
            s.content.duplicate_percent = 3;
        });
        assert!(verified.contains("`verify` and `compressible_percent`"), "{verified}");
    }
}
