//! The study of management operations: how fast a platform's control plane is ([Platform 2014], sections III.C and IV.C).

mod experiment;
mod fleet;
mod management;
mod piece;
mod platform;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
#[cfg(test)]
mod steady_tests;

pub use experiment::{OperationsOptions, find_mix};
pub(crate) use fleet::Fleet;
pub(crate) use piece::{PieceLoad, Starts, measure_piece};
pub use platform::{PlatformChoice, Tenants, tenant_job};
pub(crate) use run::REMOVE_LIMIT;
pub use run::{OperationsStudy, run_operations};
pub use schedule::{estimate_operations, mix_on};
