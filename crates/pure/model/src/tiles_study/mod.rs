//! More and more tiles at once ([Platform 2014], sections III.B and IV.B): what was measured becomes rows, which
//! [`crate::tiles`] scores; which service levels broke, on which resource of the host, and how many tiles to try next.

mod analysis;
#[cfg(test)]
mod analysis_tests;
mod breaches;

pub use analysis::{TilesStudyAnalysis, analyse_tiles_study, mean_watts, summarise_tiles_study};
pub use breaches::{NO_MEMBER, breaches, next_tiles, tile_rows, tiles_left};
