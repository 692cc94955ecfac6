//! What the processes of a platform's management stack use while operations go on.

use serde::{Deserialize, Serialize};

/// The processes of the management stack on this host, over a piece ([Platform 2014], section III.C).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagementUse {
    /// Each process, by name and number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ManagementProcess>,
    /// Why there is none, or not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A process of a management stack, over a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagementProcess {
    /// Its name, such as `libvirtd`.
    pub name: String,
    /// Its number on this host.
    pub pid: u32,
    /// Processor time, its ended children's included, in percent of one processor.
    pub cpu_percent: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}
