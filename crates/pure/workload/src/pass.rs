//! How much a load does, and in what order it goes over its region.

use serde::{Deserialize, Serialize};

/// When a worker has done enough: as soon as one of these is reached. The load ends before its time once
/// all workers have. Counted from the start of ramp-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amount {
    /// So often the bytes of its region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// So many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// So many reads, writes and trims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
}

impl Amount {
    /// The bytes after which a worker has done enough; `u64::MAX` where they do not matter.
    pub(crate) fn most_bytes(self, region_bytes: u64) -> u64 {
        let passes = self.passes.map_or(u64::MAX, |passes| region_bytes.saturating_mul(passes.into()));
        passes.min(self.bytes.unwrap_or(u64::MAX))
    }

    /// Whether any of its bounds is zero, which would be no load.
    pub(crate) fn is_nothing(self) -> bool {
        self.passes == Some(0) || self.bytes == Some(0) || self.operations == Some(0)
    }
}

/// In what order a worker goes over its region, where that is not Iometer's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Traversal {
    /// Uniform seeks visit every block once before any of them twice, and an operation is cut short
    /// where a block of it has been visited already (fio's random map). Blocks are as large as the
    /// smallest operation.
    pub every_block_once: bool,
    /// Reads, and writes with trims, each go on from where the last of their kind has ended.
    pub position_per_direction: bool,
    /// Beside the first, so many positions take turns, each going on from where its own last operation has
    /// ended (a file that fio has open several times).
    #[serde(skip_serializing_if = "is_zero")]
    pub more_positions: u32,
    /// All workers begin at their region's start; otherwise at places spread evenly over it.
    pub same_start: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Traversal {
    /// Whether it is Iometer's way.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
