//! Where an appliance runs in a comparison.

use serde::{Deserialize, Serialize};

/// One side: the same appliance, natively or in a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplianceSide {
    /// Its name, such as `native` or `vm-2`.
    pub name: String,
    /// Whether it is a VM.
    pub vm: bool,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}
