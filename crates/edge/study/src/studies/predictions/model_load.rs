//! The model load of [ESX Disk 2003], section 5.2, on both sides: threads that think, then wait for one I/O.
//!
//! On the reference the think time is searched with which it does as much I/O as the application; the same load is then
//! run in the VM. What both took is what the latency model adds up.

use std::sync::atomic::Ordering;

use virtbench_engine::TargetError;
use virtbench_lab::{Environment, LabError, Machine, Native, TimeLimits, measure};
use virtbench_model::predict::latency::{Calibration, ThinkSearch};
use virtbench_record::{Compute, ModelRun, ModelRuns, Profile, SizeShare};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::error::ApplicationsError;
use super::machine::VmOptions;
use super::storage::StorageVm;
use crate::disks::disk::{DiskError, StudyDisk};
use crate::guests::{Extras, Guests};
use crate::runner::progress::Progress;

/// How near the load's rate has to come to the application's, as a share, and in how many runs at most.
const TOLERANCE: f64 = 0.02;
const MOST_RUNS: usize = 12;
/// Length of a run, and of what comes before it.
const RAMP_NS: u64 = 500_000_000;
const TIME_NS: u64 = 3_000_000_000;
/// Operations go to places of direct I/O.
const SECTOR_BYTES: f64 = 512.0;

/// Runs the model load of a profile on this host and in a VM.
///
/// # Errors
/// The profile does not say what the load needs, the disk or the VM cannot be had, the load cannot be as fast as the
/// application, or it was to stop.
pub fn run_model_load(
    profile: &Profile,
    compute: Compute,
    options: &VmOptions,
    progress: &mut Progress<'_>,
) -> Result<ModelRuns, ApplicationsError> {
    let load = load(profile, options.disk_bytes)?;
    let name = format!("model-load-{}", std::process::id());
    let go_on = |_, _| !progress.stop.load(Ordering::Relaxed);
    let disk = StudyDisk::prepare(&options.folder, &name, options.disk_bytes, go_on).map_err(disk_failure)?;
    let mut native = Native::new("native", disk.path().to_owned()).start()?;
    let response_ns = profile.latency_ns.value().copied().unwrap_or(0.0);
    let found = search(&mut *native, &load, profile.rate(), response_ns, progress);
    native.shut_down();
    let (think_ns, reference) = found?;
    let remark = &mut |what: &str| progress.remark(what);
    let guests = Guests::find(&options.guest, &[options.storage.setup.adapter], Extras::default(), remark)?;
    let file = (disk.path(), options.disk_bytes);
    let mut vm = StorageVm::boot(&guests, &options.storage, file, progress)?;
    let subject = thinking(&mut *vm.machine, &load, think_ns, progress);
    vm.machine.shut_down();
    drop(vm.server);
    let runs = ModelRuns {
        source: format!("a model load on both machines, {} in the VM", options.storage),
        workers: load.workers,
        think_ms: think_ns / 1e6,
        reference,
        subject: subject?,
        compute,
        actual_capacity: None,
    };
    runs.check().map_err(|error| ApplicationsError::Measured(error.into()))?;
    Ok(runs)
}

fn load(profile: &Profile, region_bytes: u64) -> Result<LoadSpec, ApplicationsError> {
    let wrong = |message: &str| ApplicationsError::Input(message.into());
    let workers = *profile.workers.value().ok_or_else(|| {
        wrong("--run-model: the profile does not say how many workers there are (profile --workers N)")
    })?;
    let access = access(profile)
        .ok_or_else(|| wrong("--run-model: the profile does not say how large operations are"))?;
    let load = LoadSpec {
        workers,
        outstanding: 1,
        ramp_ns: RAMP_NS,
        time_ns: TIME_NS,
        ..LoadSpec::new(access, region_bytes)
    };
    load.validate().map_err(|error| ApplicationsError::Input(error.into()))?;
    Ok(load)
}

fn disk_failure(error: DiskError) -> ApplicationsError {
    match error {
        DiskError::Target(TargetError::Interrupted(_)) => ApplicationsError::Stopped,
        error => ApplicationsError::Target(error.into()),
    }
}

/// The mix of an application's operations. Where randomness or the share of reads is not known, the middle of what they
/// may be stands for it.
fn access(profile: &Profile) -> Option<AccessSpec> {
    let random = profile.random_band();
    let random_percent = f64::midpoint(random.low_percent, random.high_percent);
    let read_percent = profile.read_percent().unwrap_or(50.0);
    let sizes = profile.size_shares()?;
    let sum: f64 = sizes.iter().map(|size| size.share_percent).sum();
    let line = |size: &SizeShare| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a size, at least a sector
        let size_bytes = ((size.size_bytes / SECTOR_BYTES).round().max(1.0) * SECTOR_BYTES) as u64;
        let share_percent = 100.0 * size.share_percent / sum;
        AccessLine { share_percent, ..AccessLine::new(size_bytes, read_percent, random_percent) }
    };
    Some(AccessSpec { lines: sizes.iter().map(line).collect() })
}

/// The think time with which the load is as fast as the application, and what it did with it.
fn search(
    machine: &mut dyn Machine,
    load: &LoadSpec,
    per_second: f64,
    response_ns: f64,
    progress: &mut Progress<'_>,
) -> Result<(f64, ModelRun), ApplicationsError> {
    let mut search = ThinkSearch::new(load.workers, per_second, response_ns, TOLERANCE, MOST_RUNS);
    let mut runs: Vec<(f64, ModelRun)> = Vec::new();
    while let Some(think_ns) = search.next_probe() {
        let run = thinking(machine, load, think_ns, progress)?;
        let rate = run.io_per_second;
        progress.remark(&format!("think time {:.3} ms: {rate:.1} I/O per second", think_ns / 1e6));
        search.observe(think_ns, run.io_per_second);
        runs.push((think_ns, run));
    }
    let of = |think_ns: f64| runs.iter().rev().find(|(known, _)| (known - think_ns).abs() < 0.5).copied();
    let found = match search.result() {
        Some(Calibration::Found { think_ns, .. }) => of(think_ns),
        Some(Calibration::Nearest { think_ns, per_second: reached }) => {
            progress.remark(&format!(
                "the load came no nearer to {per_second:.1} I/O per second than {reached:.1}"
            ));
            of(think_ns)
        }
        Some(Calibration::OutOfReach { most_per_second }) => {
            let message = format!(
                "--run-model: without any think time the load does {most_per_second:.1} I/O per second on the reference, the \
                 application {per_second:.1}: it does not reach this disk (a cache?), or its operations overlap"
            );
            return Err(ApplicationsError::Measured(message.into()));
        }
        None => None,
    };
    found.ok_or_else(|| ApplicationsError::Measured("--run-model: no run of the model load ended".into()))
}

fn thinking(
    machine: &mut dyn Machine,
    load: &LoadSpec,
    think_ns: f64,
    progress: &Progress<'_>,
) -> Result<ModelRun, ApplicationsError> {
    let mut load = load.clone();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a time, not negative
    let delay_ns = think_ns.max(0.0).round() as u64;
    for line in &mut load.access.lines {
        line.delay_ns = delay_ns;
    }
    let measured = measure(machine, load, TimeLimits::default(), progress.stop);
    progress.check()?;
    let (_, measured) = measured.map_err(|error| match error {
        LabError::Stopped => ApplicationsError::Stopped,
        error => ApplicationsError::Measured(error.into()),
    })?;
    let total = &measured.outcome.total;
    let response = total.latency_ns.as_ref().map(|latency| latency.mean);
    let response_ns = response
        .ok_or_else(|| ApplicationsError::Measured("no operation of the model load was completed".into()))?;
    Ok(ModelRun { io_per_second: total.iops, response_ms: response_ns / 1e6 })
}
