//! An application on this host: a command from outside, a workload of virtbench's own by the agent that runs it in the VM.

use std::path::Path;
use std::time::Duration;

use virtbench_profiler::{Limits, kernel_threads_s};
use virtbench_record::{
    Band, Capacity, Case, Footprint, JobOutcome, PROFILE_FORMAT, Profile, Source, Sourced, WorkloadOutcome,
};
use virtbench_workload::WorkloadSpec;

use super::error::ApplicationsError;
use super::machine::WorkloadMachine;
use super::profile::{CommandProfile, profile_command};
use super::verify::own_workload;
use crate::runner::progress::Progress;

/// The longest that a native run is watched.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs a case once in the folder `work`, and gives its profile.
pub(super) fn profile_natively(
    case: &Case,
    work: &Path,
    progress: &Progress<'_>,
) -> Result<Profile, ApplicationsError> {
    if let Some(spec) = own_workload(&case.command) {
        let spec = WorkloadSpec { sample: true, ..spec };
        let mut machine = WorkloadMachine::native(work.to_owned())?;
        let before_s = kernel_threads_s();
        let measured = machine.run(spec, progress);
        // A kernel thread that ends meanwhile takes its time along.
        let threads_s = (kernel_threads_s() - before_s).max(0.0);
        machine.end();
        let (outcome, host) = measured?;
        let profile = own_profile(case, outcome, threads_s)?;
        return Ok(Profile { host_use: Some(host), ..profile });
    }
    let inputs = CommandProfile {
        command: &case.command,
        folder: Some(work),
        metric: case.metric.as_deref(),
        limits: Limits { ramp: Duration::ZERO, time: LONGEST, tracing: false, io_needed: true },
        echo: |_| (),
    };
    let profiled = profile_command(&inputs, progress.stop);
    // A profile that a stop cut short is none.
    progress.check()?;
    let mut profiled = profiled?;
    profiled.workers = Sourced::known(case.workers, Source::User);
    profiled.without_contradiction().map_err(|error| ApplicationsError::Measured(error.into()))
}

/// What the agent's own accounts say of a workload, during which the kernel's threads computed so long.
fn own_profile(case: &Case, outcome: WorkloadOutcome, threads_s: f64) -> Result<Profile, ApplicationsError> {
    const SILENT: &str = "the agent's accounts do not say";
    let elapsed_ns = outcome.elapsed_ns;
    let seconds = elapsed_ns as f64 / 1e9;
    let percent = |mode: usize| {
        Sourced::known(outcome.own_cpu_ns[mode] as f64 / elapsed_ns as f64 * 100.0, Source::ProcessStat)
    };
    let (user, system) = (percent(0), percent(1));
    let copied = Sourced::known(outcome.bytes as f64 / seconds, Source::Derived);
    let footprint: Sourced<Footprint> = outcome.footprint.clone().map_or_else(
        || Sourced::unavailable("the machine did not say"),
        |footprint| Sourced::known(footprint, Source::PerfEvents),
    );
    let throughput = JobOutcome::Workload(Box::new(outcome)).throughput();
    let value =
        throughput.ok_or_else(|| ApplicationsError::Measured("the workload had no throughput".into()))?;
    let processors =
        std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
    let profile = Profile {
        profile_format: PROFILE_FORMAT,
        name: case.command.join(" "),
        host: None,
        host_use: None,
        elapsed_ns: Some(elapsed_ns),
        devices: Vec::new(),
        capacity: Some(Capacity { name: "operations/s".into(), value }),
        io_per_second: Sourced::known(value, Source::Derived),
        reads_per_second: Sourced::unavailable(SILENT),
        writes_per_second: Sourced::unavailable(SILENT),
        bytes_per_second: Sourced::unavailable(SILENT),
        sizes: Sourced::unavailable(SILENT),
        random: Sourced::<Band>::unavailable(SILENT),
        workers: Sourced::known(case.workers, Source::User),
        outstanding_mean: Sourced::unavailable(SILENT),
        outstanding_peak_per_worker: Sourced::unavailable(SILENT),
        latency_ns: Sourced::unavailable(SILENT),
        think_ns: Sourced::unavailable(SILENT),
        cpu_user_percent: user,
        cpu_system_percent: system,
        cpu_kernel_threads_percent: Sourced::known(100.0 * threads_s / seconds, Source::ProcessStat),
        copied_bytes_per_second: copied,
        footprint,
        processors: Sourced::known(processors, Source::ProcessStat),
        command: case.command.clone(),
        metric: Some("io".into()),
        notes: Vec::new(),
    };
    profile.check().map_err(|error| ApplicationsError::Measured(error.into()))?;
    Ok(profile)
}
