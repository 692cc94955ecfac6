//! What was seen of the host and of guests' disks while a domain of a platform was measured: what its insights are drawn from.

use serde::{Deserialize, Serialize};

/// Pages that the kernel gave meanwhile, by where they were wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaPages {
    /// On the node of the processor that wanted them.
    pub local: u64,
    /// On another node.
    pub remote: u64,
    /// Moved from node to node afterwards.
    pub migrated: u64,
}

/// The disk of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedDisk {
    /// The configuration, such as `virtio-blk,cache=writethrough`.
    pub setup: String,
    /// Requests that it takes at once; absent where the guest does not tell.
    pub takes_at_once: Option<u32>,
    /// Requests that the load kept outstanding.
    pub outstanding: u32,
    /// `write back` or `write through`; absent where the guest does not tell.
    pub write_cache: Option<String>,
    /// What it did over all points, in bytes a second.
    pub throughput_bytes_per_s: f64,
    /// The same over the points that only write; absent where none does.
    pub writes_bytes_per_s: Option<f64>,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformObserved {
    /// The least and the greatest mean frequency of the processors, in MHz, as it was looked at every half second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_mhz: Option<[u32; 2]>,
    /// Pages by node; absent where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<NumaPages>,
    /// Disks of guests, where configurations were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<ObservedDisk>,
}
