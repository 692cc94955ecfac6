//! What a machine did while an application ran on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that a machine did, whoever asked for it: on a quiet one the application and the kernel's own
/// threads for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Footprint {
    /// How long it was looked at, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time of its processors, in nanoseconds: user code, and kernel code with interrupts.
    pub cpu_ns: [u64; 2],
    /// Bytes that system calls copied for the application.
    pub copied_bytes: u64,
    /// What the kernel was asked for, by kind; empty where nobody counted.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
}

impl Footprint {
    /// What came between an earlier look and this one, both taken since the same moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().map(|(name, count)| {
            let before = earlier.counts.get(name).copied().unwrap_or(0);
            (name.clone(), count.saturating_sub(before))
        });
        Self {
            elapsed_ns: self.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            cpu_ns: [0, 1].map(|mode| self.cpu_ns[mode].saturating_sub(earlier.cpu_ns[mode])),
            copied_bytes: self.copied_bytes.saturating_sub(earlier.copied_bytes),
            counts: counts.collect(),
        }
    }
}
