//! Users of more and more desktops at once: how many to try next, and what it comes to.

mod analysis;
#[cfg(test)]
mod analysis_tests;
mod lost;
mod percentile;
mod search;
mod summary;
mod videos;

pub use analysis::{DesktopsAnalysis, analyse_desktops, are_usable};
pub use search::{desktops_left, next_desktops};
pub use summary::summarise_desktops;
