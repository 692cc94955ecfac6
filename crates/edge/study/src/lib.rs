//! The experiments: what is measured in which order, and the folder it goes into.

mod applications;
mod apply;
mod backing;
mod backing_error;
mod colocation;
mod contents;
mod course;
mod disk;
mod estimate;
mod event;
#[cfg(test)]
mod fake_machine;
mod fence;
mod folder;
mod grid;
mod grid_study;
mod guests;
mod histogram_log;
mod images;
mod machines;
mod points;
mod prerequisites;
mod run;
mod saturate;
mod schedule;
mod setup;
mod sides;
mod study_error;
mod surface;

pub use applications::{
    ApplicationEvent, ApplicationsError, Cases, CasesError, CommandProfile, HostAndVm, MAX_COSTS_BYTES,
    Metric, NativeSide, Progress, TrialSides, Verified, VerifyInputs, VmOptions, measure_costs,
    missing_trials, own_workload, parse_costs, predict_again, profile_command, profiler_failure,
    read_workload, renew_references, run_predictions, summarise_predictions, verify,
};
pub use apply::{Load, SearchError};
pub use backing::Backing;
pub use backing_error::BackingError;
pub use colocation::{
    Colocation, ColocationOptions, ComparedSystems, JobsError, NamedJob, Saturating, SetStep,
    SimulationError, TriedSystem, compare_systems, measure_sets, missing_sets, schedule_sets, simulate,
    takes_a_rate,
};
pub use contents::Contents;
pub use course::Course;
pub use disk::{DiskError, StudyDisk};
pub use estimate::Estimate;
pub use event::{Event, Observer};
pub use fence::{
    FenceDisks, FenceError, FenceOptions, FenceRequest, HostDeviceError, Medium, System, Throttle,
    check_host_devices,
};
pub use folder::{FolderError, LoadedRun, RunFolder, load_run, read_provenance};
pub use grid::{Grid, GridError, check_plan};
pub use grid_study::{Adapters, GridOptions, NativeVsVm};
pub use guests::{Extras, GuestOptions, Guests, GuestsError, WantedAccelerator};
pub use images::{Images, ImagesError};
pub use points::measure_points;
pub use run::{Run, RunEnd, new_provenance};
pub use saturate::{SaturationRun, saturate};
pub use schedule::{Step, schedule};
pub use setup::{Setup, SetupError, setups};
pub use sides::{Sides, SidesError, SidesRequest, host_difference};
pub use study_error::StudyError;
pub use surface::{Ended, MeasuredSurface, SurfacePlan, load_at, measure_surface};
