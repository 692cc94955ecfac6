//! What the members of tiles did side by side: the rows from which a consolidation is scored ([Platform 2014], III.B).

use serde::{Deserialize, Serialize};

use crate::table_facts::TableFacts;

/// The tile of what belongs to none: management operations that ran beside all tiles.
pub const INFRASTRUCTURE: u32 = 0;

/// The columns of a table of tiles as a study writes it: `held` and those before it are scored, the others are shown.
pub const TILE_COLUMNS: [&str; 11] = [
    "configuration",
    "repetition",
    "tiles",
    "tile",
    "member",
    "value",
    "reference",
    "held",
    "response_ns",
    "completed",
    "failed",
];

/// One member of one tile in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileRow {
    /// What was measured: a host, an environment, a setting.
    pub configuration: String,
    /// Which run with that many tiles, from 0.
    pub repetition: u32,
    /// Tiles that ran at once.
    pub tiles: u32,
    /// Which of them, from 1; [`INFRASTRUCTURE`] of a management operation, which belongs to none.
    pub tile: u32,
    /// Which of its members, or which management operation.
    pub member: String,
    /// What it did, and what the reference system does, in the unit of its metric; nothing of a member that is not
    /// scored, such as an idle one.
    pub done: Option<[f64; 2]>,
    /// Whether it kept its service levels; nothing where that is not known.
    pub held: Option<bool>,
}

/// A table of tiles that somebody published or collected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TileTable {
    /// What is said of all rows.
    pub facts: TableFacts,
    /// Its rows; the first one's configuration is the reference.
    pub rows: Vec<TileRow>,
}
