//! More and more tiles at once ([Platform 2014], sections III.B and IV.B): what was measured becomes rows, which
//! [`crate::tiles`] scores; which service levels broke, on which resource of the host, and how many tiles to try next.

mod analysis;
#[cfg(test)]
mod analysis_tests;
mod breaches;
mod energy;
mod host;
mod infrastructure;
mod rows;
mod search;
mod since;
mod summary;

pub use analysis::{TilesStudyAnalysis, analyse_tiles_study};
pub use breaches::{NO_MEMBER, breaches};
pub use energy::mean_watts;
pub use rows::tile_rows;
pub use search::{next_tiles, tiles_left};
pub use summary::summarise_tiles_study;
