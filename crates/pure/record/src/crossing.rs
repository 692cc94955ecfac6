//! What crossings into a kernel cost.

use serde::{Deserialize, Serialize};

/// What it costs to cross into a kernel, as a program there sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrossingCost {
    /// A system call that does nothing, in nanoseconds.
    pub system_call_ns: u64,
    /// The first write to a page of memory, in nanoseconds.
    pub page_fault_ns: u64,
}
