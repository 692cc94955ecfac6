//! The experiments: what is measured in which order, and the folder it goes into.

mod applications;
mod apply;
mod backing;
mod backing_error;
mod contents;
mod course;
mod disk;
#[cfg(test)]
mod fake_machine;
mod fence;
mod folder;
mod grid;
mod guests;
mod histogram_log;
mod images;
mod machines;
mod points;
mod saturate;
mod schedule;
mod sets;
mod setup;
mod share;
mod sides;
mod study_error;
mod surface;

pub use applications::{
    ApplicationEvent, ApplicationsError, Cases, CasesError, CommandProfile, HostAndVm, MAX_COSTS_BYTES,
    Metric, NativeSide, Progress, TrialSides, Verified, VerifyInputs, VmOptions, measure_costs,
    missing_trials, own_workload, parse_costs, predict_again, profile_command, profiler_failure,
    read_workload, renew_references, run_model_load, run_predictions, summarise_predictions, verify,
};
pub use apply::{Load, SearchError};
pub use backing::Backing;
pub use backing_error::BackingError;
pub use contents::Contents;
pub use course::{Course, Event};
pub use disk::{DiskError, StudyDisk};
pub use fence::{
    FenceDisks, FenceError, FenceOptions, FenceRequest, HostDeviceError, Medium, Simulated, SimulationError,
    System, Throttle, check_host_devices, simulate,
};
pub use folder::{FolderError, LOG, LoadedRun, RunFolder, load_run, read_provenance};
pub use grid::{Grid, GridError, check_plan};
pub use guests::{Extras, GuestOptions, Guests, GuestsError, WantedAccelerator};
pub use images::{Images, ImagesError};
pub use points::measure_points;
pub use saturate::{SaturationRun, saturate};
pub use schedule::{Step, schedule};
pub use sets::{SetEvent, SetStep, measure_sets, missing_sets, schedule_sets};
pub use setup::{Setup, SetupError, setups};
pub use share::{at_share, saturation, takes_a_rate};
pub use sides::{Sides, SidesError, SidesRequest, host_difference};
pub use study_error::StudyError;
pub use surface::{Ended, MeasuredSurface, SurfacePlan, load_at, measure_surface};
