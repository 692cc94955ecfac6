//! More and more tiles at once ([Platform 2014], sections III.B and IV.B): what was measured becomes rows, which
//! [`crate::tiles`] scores; which service levels broke, on which resource of the host, how many tiles to try next, and what they will do
//! by what each member does by itself.

mod analysis;
#[cfg(test)]
mod analysis_tests;
mod breaches;
mod predicted;

pub use analysis::{TilesStudyAnalysis, analyse_tiles_study, mean_watts, summarise_tiles_study};
pub use breaches::{NO_MEMBER, breaches, next_tiles, tile_rows, tiles_left};
