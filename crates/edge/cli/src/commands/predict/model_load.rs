//! The model load of [ESX Disk 2003], section 5.2, on both sides: threads that think, then wait for one I/O.
//!
//! On the reference the think time is searched with which it does as much I/O as the application; the same load is then
//! run in the VM. What both took is what the latency model adds up.

use virtbench_lab::{Environment, GuestDisk, Machine, Native, TimeLimits, find_adapter, measure};
use virtbench_model::predict::calibrate::{Calibration, ThinkSearch};
use virtbench_record::{Compute, ModelRun, ModelRuns, Profile};
use virtbench_study::{Extras, Guests, StudyDisk};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::args::there::ThereArgs;
use crate::exit::{Failure, Kind};
use crate::guests::guests_failure;
use crate::interrupt;
use crate::say::tell;

/// How near the load's rate has to come to the application's, as a share, and in how many runs at most.
const TOLERANCE: f64 = 0.02;
const MOST_RUNS: usize = 12;
/// Length of a run, and of what comes before it.
const RAMP_NS: u64 = 500_000_000;
const TIME_NS: u64 = 3_000_000_000;
/// Operations go to places of direct I/O.
const SECTOR_BYTES: f64 = 512.0;

/// Runs it on both sides.
pub fn run(profile: &Profile, compute: Compute, there: &ThereArgs, vcpus: u32) -> Result<ModelRuns, Failure> {
    let usage = |message: &str| Failure::message(Kind::Usage, message.to_owned());
    let workers = *profile.workers.value().ok_or_else(|| {
        usage("--run-model: the profile does not say how many workers there are (profile --workers N)")
    })?;
    let access = access(profile)
        .ok_or_else(|| usage("--run-model: the profile does not say how large operations are"))?;
    let folder = &there.folder()?;
    let name = format!("model-load-{}", std::process::id());
    let disk = StudyDisk::prepare(folder, &name, there.size, |_, _| !interrupt::requested())
        .map_err(|error| Failure::new(Kind::Target, error))?;
    let load = LoadSpec {
        workers,
        outstanding: 1,
        ramp_ns: RAMP_NS,
        time_ns: TIME_NS,
        ..LoadSpec::new(access, there.size)
    };
    load.validate().map_err(|error| Failure::new(Kind::Usage, error))?;
    let environment = |error| Failure::new(Kind::Environment, error);
    let mut native = Native::new("native", disk.path().to_owned()).start().map_err(environment)?;
    let response_ns = profile.latency_ns.value().copied().unwrap_or(0.0);
    let found = search(&mut *native, &load, profile.rate(), response_ns);
    native.shut_down();
    let (think_ns, reference) = found?;
    let adapter = find_adapter(&there.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
    let options = there.guest(vcpus).options();
    let guests = Guests::find(&options, &[adapter], Extras::default(), &mut |remark| tell!("{remark}"))
        .map_err(guests_failure)?;
    let mut vm = guests
        .vm("vm", GuestDisk::new(adapter, disk.path().to_owned()), None, Vec::new())
        .map_err(guests_failure)?
        .start()
        .map_err(|error| Failure::new(Kind::Guest, error))?;
    let subject = thinking(&mut *vm, &load, think_ns);
    vm.shut_down();
    let runs = ModelRuns {
        source: format!("a model load on both machines, {} in the VM", there.adapter),
        workers,
        think_ms: think_ns / 1e6,
        reference,
        subject: subject?,
        compute,
        actual_capacity: None,
    };
    runs.check().map_err(|error| Failure::new(Kind::Measured, error))?;
    Ok(runs)
}

/// The mix of an application's operations. Where randomness or the share of reads is not known, the middle of what they
/// may be stands for it.
fn access(profile: &Profile) -> Option<AccessSpec> {
    let random = profile.random_band();
    let random_percent = f64::midpoint(random.low_percent, random.high_percent);
    let read_percent = profile.read_percent().unwrap_or(50.0);
    let sizes = profile.size_shares()?;
    let sum: f64 = sizes.iter().map(|size| size.share_percent).sum();
    let line = |size: &virtbench_record::SizeShare| {
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
) -> Result<(f64, ModelRun), Failure> {
    let mut search = ThinkSearch::new(load.workers, per_second, response_ns, TOLERANCE, MOST_RUNS);
    let mut runs: Vec<(f64, ModelRun)> = Vec::new();
    while let Some(think_ns) = search.next_probe() {
        let run = thinking(machine, load, think_ns)?;
        tell!("think time {:.3} ms: {:.1} I/O per second", think_ns / 1e6, run.io_per_second);
        search.observe(think_ns, run.io_per_second);
        runs.push((think_ns, run));
    }
    let of = |think_ns: f64| runs.iter().rev().find(|(known, _)| (known - think_ns).abs() < 0.5).copied();
    let found = match search.result() {
        Some(Calibration::Found { think_ns, .. }) => of(think_ns),
        Some(Calibration::Nearest { think_ns, per_second: reached }) => {
            tell!("the load came no nearer to {per_second:.1} I/O per second than {reached:.1}");
            of(think_ns)
        }
        Some(Calibration::OutOfReach { most_per_second }) => {
            let message = format!(
                "--run-model: without any think time the load does {most_per_second:.1} I/O per second on the reference, the \
                 application {per_second:.1}: it does not reach this disk (a cache?), or its operations overlap"
            );
            return Err(Failure::message(Kind::Measured, message));
        }
        None => None,
    };
    found.ok_or_else(|| {
        Failure::message(Kind::Measured, "--run-model: no run of the model load came to an end")
    })
}

fn thinking(machine: &mut dyn Machine, load: &LoadSpec, think_ns: f64) -> Result<ModelRun, Failure> {
    let mut load = load.clone();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a time, not negative
    let delay_ns = think_ns.max(0.0).round() as u64;
    for line in &mut load.access.lines {
        line.delay_ns = delay_ns;
    }
    let measured = measure(machine, load, TimeLimits::default(), interrupt::flag());
    let (_, measured) = measured.map_err(|error| {
        let kind = if interrupt::requested() { Kind::Interrupted } else { Kind::Measured };
        Failure::new(kind, error)
    })?;
    let total = &measured.outcome.total;
    let response = total.latency_ns.as_ref().map(|latency| latency.mean);
    let response_ns = response
        .ok_or_else(|| Failure::message(Kind::Measured, "no operation of the model load was completed"))?;
    Ok(ModelRun { io_per_second: total.iops, response_ms: response_ns / 1e6 })
}
