//! The experiments: what is measured in which order, and the folder it goes into.

mod folder;
mod grid;
mod schedule;

pub use folder::{FolderError, LoadedRun, RunFolder, load_run};
pub use grid::{Grid, GridError};
pub use schedule::{Step, schedule};
