//! Runs classic workloads, natively and in guests: the same code on both sides.
//!
//! ```text
//! WorkloadSpec --prepare--> Prepared --run--> rounds of a Body -> Sheet -> WorkloadOutcome
//!                                             threads of it    -> Watch -> series, progress
//! ```
//!
//! A [`Body`] is one kind of workload, made ready by [`prepare`]. [`Prepared::run`] begins it at an agreed
//! moment and repeats it; what a run measures goes to the [`Sheet`], what is under way is counted on
//! the [`Watch`], which also says when to end.

mod ballast;
mod body;
mod caches;
mod command;
mod cpu;
mod crew;
mod files;
mod machine;
mod memory;
mod mount;
mod prepare;
mod run;
mod series;
mod sheet;
mod system;

pub use body::{Body, ClassicError, Place, Watch};
pub use prepare::{Prepared, prepare};
pub use sheet::Sheet;
