//! What a program reads of tiles.

use serde::{Deserialize, Serialize};

use crate::summary::{Conclusion, Estimated};

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
