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
mod command;
mod cpu;
mod file_workload;
pub mod files;
#[cfg(unix)]
mod machine;
#[cfg(windows)]
#[path = "windows/machine.rs"]
mod machine;
mod memory;
#[cfg(unix)]
mod mount;
#[cfg(windows)]
#[path = "windows/mount.rs"]
mod mount;
#[cfg(unix)]
mod program_group;
#[cfg(windows)]
#[path = "windows/program_group.rs"]
mod program_group;
mod run;
mod runner;
mod storage_folder;
#[cfg(unix)]
mod system;
#[cfg(windows)]
#[path = "windows/system.rs"]
mod system;
#[cfg(unix)]
mod without_vdso;

pub use run::{Prepared, prepare, prepare_until};
pub use runner::{RunError, Runner, Sheet, Storage, Watch};
#[cfg(unix)]
pub use without_vdso::{WITHOUT_VDSO, run_without_vdso};
