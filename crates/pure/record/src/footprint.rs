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
    /// Kernel time by function, in nanoseconds, as far as samples of it tell; empty where nobody looked.
    #[serde(default)]
    pub functions: BTreeMap<String, u64>,
}

impl Footprint {
    /// What came between an earlier look and this one, both taken since the same moment. Functions are left as they are.
    #[must_use]
    pub fn since(self, earlier: &Self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            cpu_ns: [0, 1].map(|mode| self.cpu_ns[mode].saturating_sub(earlier.cpu_ns[mode])),
            copied_bytes: self.copied_bytes.saturating_sub(earlier.copied_bytes),
            functions: self.functions,
        }
    }
}
