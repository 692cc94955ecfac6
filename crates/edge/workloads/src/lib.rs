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
#[cfg(unix)]
mod caches;
#[cfg(windows)]
#[path = "windows/caches.rs"]
mod caches;
#[cfg(unix)]
mod command;
#[cfg(windows)]
#[path = "windows/command.rs"]
mod command;
mod cpu;
#[cfg(unix)]
mod file_workload;
#[cfg(windows)]
#[path = "windows/file_workload.rs"]
mod file_workload;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
mod machine;
#[cfg(windows)]
#[path = "windows/machine.rs"]
mod machine;
mod memory;
#[cfg(unix)]
mod mount;
mod prepare;
mod run;
mod runner;
mod series;
mod sheet;
#[cfg(unix)]
mod system;
#[cfg(windows)]
#[path = "windows/system.rs"]
mod system;
mod threads;

pub use prepare::{Prepared, prepare, prepare_until};
pub use runner::{RunError, Runner, Storage, Watch};
pub use sheet::Sheet;
