//! Management operations: what to measure next, and what it comes to.

mod analysis;
mod clones;
mod growth;
mod kinds;
mod search;
mod summary;
#[cfg(test)]
use virtbench_samples::operations as synthetic;
mod tenants;

pub use analysis::{OperationsAnalysis, StepAnalysis, analyse_operations};
pub use clones::CloneAnalysis;
pub use growth::{Growth, growth};
pub use kinds::KindAnalysis;
pub use search::search_rate;
pub use summary::summarise_operations;
pub use tenants::{TenantsAnalysis, analyse_tenants};
