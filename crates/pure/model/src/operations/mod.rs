//! Management operations: what to measure next, and what it comes to.

mod analysis;
mod clones;
mod growth;
mod kinds;
mod management;
mod search;
mod summary;
#[cfg(test)]
use virtbench_samples::operations as synthetic;
mod tenants;

pub use analysis::{OperationsAnalysis, StepAnalysis, analyse_operations, without_result};
pub use clones::CloneAnalysis;
pub use growth::{Growth, growth};
pub use kinds::KindAnalysis;
pub use management::ManagementAnalysis;
pub use search::{most_pieces, search_rate};
pub use summary::summarise_operations;
pub use tenants::{TenantsAnalysis, analyse_tenants};
