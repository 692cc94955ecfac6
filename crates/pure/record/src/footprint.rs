//! What a machine did while an application ran on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that a machine did, by any program: on a quiet one the application and the kernel's own
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
