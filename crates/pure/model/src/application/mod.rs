//! An application on two sides: how many of the reference's transactions the other does, and why.

#[cfg(test)]
mod application_tests;
mod compared;
mod growth;
mod summary;

pub use compared::{ApplicationAnalysis, ApplicationSide, SideRatio, analyse_application};
pub use growth::{CycleMismatch, Growth};
pub(crate) use summary::application_numbers;
pub use summary::summarise_application;
