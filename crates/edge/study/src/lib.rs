//! The experiments: what is measured in which order, and the folder it goes into.
//!
//! A study is run from Rust as the command runs it. Here a grid of two points, natively, on a file of 1 MiB:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use virtbench_lab::{Environment, Native};
//! use virtbench_record::{GridPlan, Plan};
//! use virtbench_runs::{RunFolder, load_any_run};
//! use virtbench_study::{Course, StudyDisk, measure_points, new_provenance};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let temp = tempfile::tempdir()?;
//! let out = temp.path().join("run");
//! let plan = Plan::NativeVsVm(GridPlan {
//!     grid: "mine".into(), blocks_bytes: vec![4096], read_percents: vec![0, 100], random_percents: vec![100],
//!     repetitions: 1, outstanding: 4, workers: 1, ramp_ns: 0, time_ns: 20_000_000, size_bytes: 1 << 20,
//!     environments: vec!["native".into()], seed: 1,
//! });
//! let mut folder = RunFolder::create(&out, new_provenance(plan, Vec::new(), &out))?;
//! let disk = StudyDisk::prepare(&out, "example", 1 << 20, |_, _| true)?;
//! let native: Box<dyn Environment> = Box::new(Native::new("native", disk.path().to_owned()));
//! measure_points(&mut folder, &mut [native], Course::SIDE_BY_SIDE, &AtomicBool::new(false), &mut ())?;
//! let run = load_any_run(&out)?;
//! for record in run.records.points() {
//!     let iops = record.measured().map(|measured| measured.outcome.total.iops);
//!     println!("{}: {iops:?} operations a second", record.point);
//! }
//! # assert!(run.records.points().iter().all(|record| record.measured().is_some()));
//! # assert_eq!(run.records.points().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! Guests are found and booted by the studies themselves: the same load in one VM and in two, told to nobody.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use virtbench_study::{Colocation, ColocationOptions, GuestOptions, NamedJob, Run, Setup, WantedAccelerator};
//! use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let load = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 64 << 20);
//! let job = NamedJob { name: "mine".into(), spec: load.into() };
//! let (vcpus, memory_bytes, accelerator) = (1, 256 << 20, WantedAccelerator::Auto);
//! let options = ColocationOptions {
//!     guest: GuestOptions { vcpus, memory_bytes, kernel: None, accelerator },
//!     setup: Setup::parse("virtio-blk@raw")?, size_bytes: 64 << 20, filesystem: "ext4".into(), target_dir: None,
//!     environments: Vec::new(),
//!     pinned: false, repetitions: 3, time_ns: Some(2_000_000_000), ramp_ns: None, seed: 1,
//! };
//! let (stop, out) = (AtomicBool::new(false), Path::new("neighbours"));
//! let run = &mut Run { out, resume: false, command: Vec::new(), stop: &stop, observer: &mut () };
//! Colocation::neighbours(job, &[1, 2], options)?.run(run)??;
//! # Ok(())
//! # }
//! ```
//!
//! Tiles of four VMs, one and then two of them, as `study tiles --tiles 1,2` measures them:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use virtbench_recipe::supplied;
//! use virtbench_record::TileNumbers;
//! use virtbench_study::{Experiment, GuestChoice, MemberPlace, Run, SUPPLIED_TILES, TileFile, TilesOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = TileFile::parse(SUPPLIED_TILES[0].text)?;
//! let recipe = |name: &str| supplied::find(name).ok_or("no such recipe")?.recipe().map_err(|error| error.to_string());
//! let recipes = file.members.iter().map(|member| recipe(&member.appliance)).collect::<Result<_, String>>()?;
//! let tiles = TilesOptions {
//!     file, recipes, place: MemberPlace::Vm, tiles: TileNumbers::Given(vec![1, 2]), network: None, predict: false, repetitions: 3,
//!     ramp_ns: 20_000_000_000, time_ns: 60_000_000_000, energy: None, seed: 1, infrastructure: None,
//!     guests: GuestChoice::default(), target_dir: None, program: Some("/usr/bin/virtbench".into()),
//! };
//! println!("{}", tiles.estimate());
//! let (stop, out) = (AtomicBool::new(false), Path::new("tiles"));
//! tiles.run(&mut Run { out, resume: false, command: Vec::new(), stop: &stop, observer: &mut () })??;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(
    not(feature = "full"),
    allow(
        dead_code,
        unused_imports,
        reason = "some parts serve only the studies that this build leaves out"
    )
)]

#[cfg(feature = "full")]
mod appliances;
mod disks;
mod environments;
#[cfg(test)]
mod fake_machine;
#[cfg(feature = "full")]
mod fence;
#[cfg(not(feature = "full"))]
#[path = "no_fence.rs"]
mod fence;
mod guests;
mod machines;
mod runner;
mod search;
mod setup;
mod studies;
mod study_error;
mod user_files;

#[cfg(feature = "full")]
pub use appliances::built::{BuiltAppliance, FoundRecipe, all_recipes, find_recipe};
#[cfg(feature = "full")]
pub use appliances::place::{TriedAppliance, check_native, trial_folder};
#[cfg(feature = "full")]
pub use appliances::sides::{Sides, SidesError, SidesRequest, host_difference};
pub use disks::backing::Backing;
pub use disks::backing_error::BackingError;
pub use disks::disk::{Contents, DiskError, StudyDisk};
pub use disks::images::{Images, ImagesError};
pub use environments::{
    EnvironmentNames, EnvironmentUri, FoundEnvironments, LibvirtUri, MadeEnvironments, NamedEnvironment,
    NamesError, QemuUri, UriError, find_environments, find_homes,
};
pub use fence::{FenceDisks, FenceError, FenceOptions, FenceRequest, HostDeviceError};
#[cfg(feature = "full")]
pub use fence::{Medium, System, Throttle, check_host_devices};
pub use guests::{
    ApplianceGuests, Extras, GuestChoice, GuestOptions, Guests, GuestsError, WantedAccelerator,
};
pub use machines::make_target;
pub use runner::event::{Estimate, Event, Observer};
pub use runner::prerequisites::is_program;
pub use runner::progress::Course;
#[cfg(feature = "full")]
pub use runner::progress::Progress;
pub use runner::run::{Experiment, Run, RunEnd, new_provenance};
pub use search::{
    Ended, Load, MeasuredSurface, SaturationRun, SearchError, SurfacePlan, load_at, measure_surface, saturate,
};
pub use setup::{Setup, SetupError, setups};
#[cfg(feature = "full")]
pub use studies::application::{
    ApplianceLoad, ApplicationFailure, ApplicationFile, ApplicationFileError, ApplicationOptions,
    ApplicationSides, ApplicationStudy, LoadedAppliances, SideKind, TierFile, run_application,
};
pub use studies::colocation::{
    Colocation, ColocationOptions, JobsError, NamedJob, Saturating, ScheduledSet, measure_sets, missing_sets,
    schedule_sets, takes_a_rate,
};
#[cfg(feature = "full")]
pub use studies::colocation::{
    ComparedSystems, SimulationError, TriedSystem, compare_systems, estimate_systems, simulate,
};
#[cfg(feature = "full")]
pub use studies::desktops::{
    DesktopAppliance, DesktopSource, DesktopsOptions, DesktopsPlace, DesktopsStudy, ExistingDesktops,
    find_day,
};
pub use studies::grid::definition::{Grid, GridError, ScheduledPoint, check_plan, schedule};
pub use studies::grid::points::measure_points;
pub use studies::grid::{Adapters, Before, Compare, GridOptions, MachineAndVm, NativeVsVm, USUAL_ADAPTERS};
pub use studies::network::{NetworkOptions, NetworkStudy, has_vhost, network_machine};
#[cfg(feature = "full")]
pub use studies::oltp::{
    ApplianceSides, DatabaseAppliance, OltpBoot, OltpFailure, OltpLoad, OltpOptions, OltpSides, OltpStudy,
    run_oltp,
};
#[cfg(feature = "full")]
pub use studies::operations::{
    OperationsOptions, OperationsStudy, PlatformChoice, Tenants, estimate_operations, find_mix, mix_on,
    run_operations, tenant_job,
};
pub use studies::platform::{PlatformOptions, PlatformProfile, PlatformStudy};
#[cfg(feature = "full")]
pub use studies::predictions::{
    ApplicationsError, Cases, CasesError, CommandProfile, MAX_COSTS_BYTES, Metric, NativeSide, Predictions,
    Storage, Verified, VerifyInputs, VmOptions, measure_costs, own_workload, parse_costs, platform_costs,
    platform_names, predict_again, profile_command, profiler_failure, run_model_load, several_storages,
    storages_of_run, untried, verify,
};
#[cfg(feature = "full")]
pub use studies::tiles::{
    HostAddress, InfrastructureOptions, MemberPlace, SUPPLIED_TILES, SuppliedTile, TileFile, TileFileError,
    TileFileMember, TileMember, TilesHosting, TilesOptions, TilesPlace, TilesStudy, generator_command,
};
pub use study_error::StudyError;
pub use user_files::{read_user_file, read_workload, user_folder};
