//! The experiments: what is measured in which order, and the folder it goes into.

mod disk;
mod folder;
mod grid;
mod histogram_log;
pub mod native_vs_vm;
mod schedule;

pub use disk::{DiskError, StudyDisk};
pub use folder::{FolderError, LoadedRun, RunFolder, load_run};
pub use grid::{Grid, GridError, check_plan};
pub use schedule::{Step, schedule};
