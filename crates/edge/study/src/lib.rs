//! The experiments: what is measured in which order, and the folder it goes into.

mod apply;
mod disk;
mod folder;
mod grid;
mod histogram_log;
pub mod native_vs_vm;
mod saturate;
mod schedule;
mod surface;

pub use apply::{Load, SearchError};
pub use disk::{DiskError, StudyDisk};
pub use folder::{FolderError, LoadedRun, RunFolder, load_run};
pub use grid::{Grid, GridError, check_plan};
pub use saturate::{SaturationRun, saturate};
pub use schedule::{Step, schedule};
pub use surface::{Ended, MeasuredSurface, SurfacePlan, load_at, measure_surface};
