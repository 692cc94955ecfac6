//! The experiments: what is measured in which order, and the folder it goes into.

mod apply;
mod backing;
mod disk;
#[cfg(test)]
mod fake_machine;
mod fence;
mod folder;
mod grid;
mod histogram_log;
mod images;
mod machines;
mod points;
mod saturate;
mod schedule;
mod sets;
mod setup;
mod share;
mod surface;

pub use apply::{Load, SearchError};
pub use backing::{Backing, BackingError};
pub use disk::{DiskError, StudyDisk};
pub use fence::{
    FenceDisks, FenceError, FenceOptions, FenceRequest, HostDeviceError, Medium, Simulated, SimulationError,
    System, Throttle, check_host_devices, simulate,
};
pub use folder::{FolderError, LoadedRun, RunFolder, load_run, read_provenance};
pub use grid::{Grid, GridError, check_plan};
pub use images::{Contents, Images, ImagesError};
pub use points::{Course, Event, StudyError, measure_points};
pub use saturate::{SaturationRun, saturate};
pub use schedule::{Step, schedule};
pub use sets::{SetEvent, SetStep, measure_sets, missing_sets, schedule_sets};
pub use setup::{Setup, SetupError, setups};
pub use share::{at_share, saturation, takes_a_rate};
pub use surface::{Ended, MeasuredSurface, SurfacePlan, load_at, measure_surface};
