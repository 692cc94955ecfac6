//! A study of sides: what its samples come to, each side against the first.

mod analysis;
mod peaks;
mod summary;

pub use analysis::{SampleFound, SamplesAnalysis, SamplesSide, analyse_samples};
pub use peaks::{Peak, peaks};
pub use summary::summarise_samples;
