//! A suite of computations, one for each kind of SPECjvm2008's (paper 4, section 3).

use serde::{Deserialize, Serialize};
use virtbench_units::format_duration_ns;

use super::{WorkloadError, check};

/// One computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuKernel {
    /// SHA-256 of a buffer.
    Sha,
}

impl CpuKernel {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 1] = [Self::Sha];

    /// Its name in the notation and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha => "sha",
        }
    }
}

/// The suite, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuSpec {
    /// Threads, each with its own data; 0 for one on each processor.
    pub threads: u32,
    /// How long each kernel is repeated in a run, in nanoseconds.
    pub kernel_ns: u64,
    /// Which kernels, in this order.
    pub kernels: Vec<CpuKernel>,
}

impl Default for CpuSpec {
    fn default() -> Self {
        Self { threads: 0, kernel_ns: 1_000_000_000, kernels: CpuKernel::ALL.to_vec() }
    }
}

impl CpuSpec {
    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        if self.kernels.is_empty() {
            return Err(WorkloadError::Nothing { key: "kernels" });
        }
        check("kernel", self.kernel_ns, 1_000_000, 3_600_000_000_000, format_duration_ns)
    }
}
