//! Memory throughput, as RAMSMP and STREAM measure it ([Multi-VM 2010], section 4.1).

use serde::{Deserialize, Serialize};
use virtbench_units::{format_bytes, format_duration_ns};

use super::bounds::{WorkloadError, check};

/// How results are written to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stores {
    /// Through the caches, as compiled code does: a line is read before it is written.
    Regular,
    /// Past the caches, with non-temporal stores.
    NonTemporal,
    /// Both, one after the other.
    #[default]
    Both,
}

/// What is done with the arrays `a`, `b` and `c` of doubles, in STREAM's naming and order. `q` is a
/// constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKernel {
    /// `c = a`
    Copy,
    /// `b = q c`
    Scale,
    /// `c = a + b`
    Add,
    /// `a = b + q c`
    Triad,
}

impl MemoryKernel {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// Bytes that STREAM counts for each element: those the program reads and writes. What the
    /// processor reads in order to write a part of a line is not counted.
    #[must_use]
    pub fn bytes_per_element(self) -> u64 {
        match self {
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }
}

/// Memory throughput, on arrays much larger than any cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemorySpec {
    /// Threads, each with its share of the arrays; 0 for one on each processor.
    pub threads: u32,
    /// Size of each of the three arrays, in bytes; 0 for four times the last-level cache, less where
    /// memory is short.
    pub array_bytes: u64,
    /// How long each kernel is repeated in a run, in nanoseconds.
    pub kernel_ns: u64,
    /// How results are written.
    pub stores: Stores,
}

impl Default for MemorySpec {
    fn default() -> Self {
        Self { threads: 0, array_bytes: 0, kernel_ns: 300_000_000, stores: Stores::Both }
    }
}

impl MemorySpec {
    /// The smallest array, in bytes; the largest is a matter of the machine's memory.
    pub const MIN_ARRAY_BYTES: u64 = 64 << 10;

    /// How long one run takes, in nanoseconds.
    pub(super) fn run_ns(&self) -> u64 {
        let variants = if self.stores == Stores::Both { 2 } else { 1 };
        self.kernel_ns.saturating_mul(variants * MemoryKernel::ALL.len() as u64)
    }

    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        if self.array_bytes != 0 {
            check("array", self.array_bytes, Self::MIN_ARRAY_BYTES, 1 << 42, format_bytes)?;
        }
        check("kernel", self.kernel_ns, 1_000_000, 3_600_000_000_000, format_duration_ns)
    }
}
