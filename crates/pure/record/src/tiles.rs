//! What the members of tiles did side by side: the rows from which a consolidation is scored ([Platform 2014], III.B).

use serde::{Deserialize, Serialize};

use crate::point::TableFacts;
use crate::summary::{Conclusion, Estimated};

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

/// A member at one number of tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileMemberNumbers {
    /// Its name.
    pub member: String,
    /// What it did as a share of the reference system, geometric mean over the tiles.
    pub normalised: Option<Estimated>,
    /// What is left of what it does with one tile, 1 being all.
    pub of_one_tile: Option<Estimated>,
    /// Times that it broke its service levels, over all tiles and runs.
    pub broken: u32,
    /// Whether it is a management operation of the infrastructure load, and no member of a tile.
    pub infrastructure: bool,
}

/// One number of tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileStepNumbers {
    /// Tiles at once.
    pub tiles: u32,
    /// Runs with them.
    pub runs: u32,
    /// Runs in which every member kept its service levels.
    pub held: u32,
    /// The score: `total`, but null where a run broke a level.
    pub score: Option<Estimated>,
    /// The sum of the tiles' scores, whether levels were kept or not.
    pub sum: Option<Estimated>,
    /// The score of the infrastructure load; null where there was none.
    pub infrastructure: Option<Estimated>,
    /// The sum, or with an infrastructure load 80 % of the sum and 20 % of that.
    pub total: Option<Estimated>,
    /// Jain's index of fairness of what members have left.
    pub jain: Option<f64>,
    /// The members.
    pub members: Vec<TileMemberNumbers>,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileSideNumbers {
    /// Its name.
    pub configuration: String,
    /// The most tiles that fit; null where one is too many.
    pub fits: Option<u32>,
    /// The least number of tiles that does not fit.
    pub too_many: Option<u32>,
    /// The share of runs with the most tiles that are expected to keep their levels at least, in percent, with 95 %
    /// confidence.
    pub holds_at_least_percent: Option<f64>,
    /// Every number of tiles, ascending.
    pub steps: Vec<TileStepNumbers>,
}

/// A configuration against the first one with as many tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileChangeNumbers {
    /// Which configuration.
    pub configuration: String,
    /// The one that it is compared with.
    pub reference: String,
    /// Tiles on both.
    pub tiles: u32,
    /// The totals as a ratio; the sums of the tiles' scores where only one of the two has an infrastructure load.
    pub sum: Estimated,
    /// Every member's ratio, the one that moved most first.
    pub members: Vec<(String, Estimated)>,
}

/// The figures of tiles, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The configurations, the reference first.
    pub configurations: Vec<TileSideNumbers>,
    /// All but the first against it, wherever both have as many tiles.
    pub changes: Vec<TileChangeNumbers>,
}
