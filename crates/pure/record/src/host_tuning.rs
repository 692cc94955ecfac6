//! How a host's kernel is set where that decides what virtual machines cost. What it does not tell is absent.

use serde::{Deserialize, Serialize};

/// The clock that the kernel reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// Its name, such as `tsc` or `hpet`.
    pub source: String,
    /// The others that there are.
    pub others: Vec<String>,
    /// What a program pays for the time, in nanoseconds: the median of several batches.
    pub read_ns: u64,
}

/// Pages of equal contents that the kernel merges (KSM).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KsmFacts {
    /// Whether it looks for such pages.
    pub runs: bool,
    /// Pages that are spared by it now.
    pub sharing_pages: u64,
}

/// How the frequency of the processors is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrequencyFacts {
    /// Who chooses it, such as `schedutil` or `performance`.
    pub governor: String,
    /// The least and the greatest that it may be, in MHz.
    pub limits_mhz: [u32; 2],
}

/// Settings of a host's kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostTuning {
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Merging of equal pages.
    pub ksm: Option<KsmFacts>,
    /// The clock.
    pub clock: Option<ClockFacts>,
    /// NUMA nodes with memory.
    pub numa_nodes: Option<u32>,
    /// Frequencies of the processors; a virtual machine is mostly told none.
    pub frequency: Option<FrequencyFacts>,
}

impl HostTuning {
    /// What is set, without what was measured or counted.
    #[must_use]
    pub fn settings(&self) -> Self {
        let mut settings = self.clone();
        if let Some(clock) = &mut settings.clock {
            clock.read_ns = 0;
        }
        if let Some(ksm) = &mut settings.ksm {
            ksm.sharing_pages = 0;
        }
        settings
    }
}
