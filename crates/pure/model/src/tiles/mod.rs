//! How many tiles fit, and what they score ([Platform 2014], III.B): metrics are normalised by a reference system, a tile's
//! score is the geometric mean of its members', and the total is the sum over tiles. A member that breaks its service levels
//! fails the run with that many tiles.

mod analysis;
mod changes;
mod configuration;
mod score;
mod summary;
#[cfg(test)]
mod tiles_tests;

pub use analysis::{TilesAnalysis, analyse_tiles};
pub use changes::TileChange;
pub use configuration::{TileConfiguration, TileMember, TileStep};
pub use score::{APPLICATIONS_WEIGHT, at_least_share, tile_score, total_score};
pub use summary::summarise_tiles;
