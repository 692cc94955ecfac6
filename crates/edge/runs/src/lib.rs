//! The folder of a run: written while it is measured, read at any later time. Its readers need no environment.

mod folder;
mod held;
mod histogram_log;

pub use folder::{
    FolderError, LOG, LoadedRun, RunFolder, load_any_run, load_run, read_provenance, write_whole,
};
pub use held::Held;
