//! The study of management operations: how fast a platform's control plane is ([Platform 2014], sections III.C and IV.C).

mod fleet;
mod log;
mod piece;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod tally;
mod tenants;

pub use run::{OperationsStudy, run_operations};
pub use schedule::{estimate_operations, mix_on};
pub use tenants::Tenants;
