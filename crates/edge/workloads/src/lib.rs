//! Runs workloads, natively and in guests: the same code on both sides.
//!
//! ```text
//! WorkloadSpec --prepare--> Prepared --run--> rounds of a Runner -> Sheet -> WorkloadOutcome
//!                                             threads of it    -> Watch -> series, progress
//! ```
//!
//! A [`Runner`] is one kind of workload, made ready by [`prepare`]. [`Prepared::run`] begins it at an agreed
//! moment and repeats it; what a run measures goes to the [`Sheet`], what is in flight is counted on
//! the [`Watch`], which also says when to end.

mod ballast;
mod caches;
mod command;
mod cpu;
mod file_workload;
pub mod files;
mod machine;
mod memory;
mod mount;
mod prepare;
mod run;
mod runner;
mod series;
mod sheet;
mod system;
mod threads;

pub use prepare::{Prepared, prepare, prepare_until};
pub use runner::{RunError, Runner, Storage, Watch};
pub use sheet::Sheet;
