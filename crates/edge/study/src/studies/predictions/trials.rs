//! Both sides of a trial, as they really are: an application profiled on this host, and run in a VM on it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use virtbench_lab::{CpuSample, LabError, Translator, host_facts, run_command};
use virtbench_profiler::{
    Application, ApplicationError, Disk, Limits, ProfilerError, kernel_threads_s, profile,
};
use virtbench_record::{
    Band, Capacity, Case, Footprint, PROFILE_FORMAT, Profile, Source, Sourced, WorkloadOutcome, scaled_ns,
};
use virtbench_workload::WorkloadSpec;

use super::basis::Basis;
use super::costs::{measure_costs, renew_references};
use super::error::ApplicationsError;
use super::machine::{NativeFolder, NativeSide, VmOptions, WorkloadMachine, find_guests, translator};
use super::metric::{Metric, middle};
use super::verify::{
    AgentRun, InTurn, Verified, VerifyInputs, VmToRun, own_workload, run_capacity, verify_in_turn,
};
use crate::runner::progress::Progress;

/// How long copying what an application begins with may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// What a study of predictions has measured.
pub trait TrialSides {
    /// What predictions are made from.
    ///
    /// # Errors
    /// It cannot be measured, or it was to stop.
    fn basis(&mut self, progress: &mut Progress<'_>) -> Result<Basis, ApplicationsError>;

    /// Measures once more what of it changes within minutes.
    ///
    /// # Errors
    /// It cannot be measured, or it was to stop.
    fn renew(&mut self, basis: &mut Basis, progress: &mut Progress<'_>) -> Result<(), ApplicationsError>;

    /// The case where it is predicted from, beginning with a copy of the folder `prepared`: the run in the middle of so many.
    ///
    /// # Errors
    /// It cannot be run or profiled, or it was to stop.
    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError>;

    /// The case where it is predicted for, likewise: in the VM, or in one on the storage of this name.
    ///
    /// # Errors
    /// It cannot be run, the VM failed, or it was to stop.
    fn verify(
        &mut self,
        case: &Case,
        profile: &Profile,
        subject: Option<&str>,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError>;
}

/// This host and a VM on it.
#[derive(Debug)]
pub struct HostAndVm {
    options: VmOptions,
    native: NativeSide,
    /// What programs are tried under on this host, where the VM is emulated.
    translator: Option<Translator>,
}

impl HostAndVm {
    /// Both sides, when everything has been found that they need; see [`NativeSide::new`] for when to make them.
    ///
    /// # Errors
    /// There is no such file system or adapter, or something is missing on this host.
    pub fn new(options: VmOptions, progress: &mut Progress<'_>) -> Result<Self, ApplicationsError> {
        let native = NativeSide::new(&options, progress)?;
        let translator = translator(&find_guests(&options, &[], progress)?.0, progress);
        Ok(Self { options, native, translator })
    }
}

impl TrialSides for HostAndVm {
    fn basis(&mut self, progress: &mut Progress<'_>) -> Result<Basis, ApplicationsError> {
        Ok(Basis::Costs(Box::new(measure_costs(&self.options, &self.native, progress)?)))
    }

    fn renew(&mut self, basis: &mut Basis, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        match basis {
            Basis::Costs(costs) => {
                renew_references(&self.options, &self.native, &mut costs.references, progress)
            }
            Basis::Storages(_) => Ok(()),
        }
    }

    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError> {
        let (place, work) = self.place(case, prepared, progress)?;
        // The first run warms up, and its system calls are counted, which slows it down.
        let counted =
            RunApart::unless_it_fails("its system calls are not counted", case, progress, |progress| {
                RunApart::new(case, place.counting_machine(&work)?, true, progress)
            })?;
        // The agent is not translated, nor are workloads of its own.
        let translator = self.translator.as_ref().filter(|_| own_workload(&case.command).is_none());
        let translated = translator.map(|translator| {
            RunApart::unless_it_fails("it is not translated", case, progress, |progress| {
                let machine = place.translating_machine(&work, translator)?;
                RunApart::new(case, machine, false, progress)
            })
        });
        let translated = translated.transpose()?.flatten();
        let profiles: Result<Vec<Profile>, ApplicationsError> =
            (0..runs.max(1)).map(|_| profile_natively(case, (&place, &work), progress)).collect();
        drop(place);
        let profile = middle(profiles?, |profile| profile.capacity().value);
        let mut profile =
            profile.ok_or_else(|| ApplicationsError::Measured("it was not run natively".into()))?;
        if let Some(counted) = counted {
            counted.add_to(&mut profile, |seen, counted, times| {
                seen.crossings = counted.crossings.map(|crossings| crossings.scaled(times));
            });
        }
        if let Some(translated) = translated {
            translated.add_to(&mut profile, |seen, translated, times| {
                seen.translated_ns = scaled_ns(translated.cpu_ns[0], times);
            });
        }
        Ok(profile)
    }

    fn verify(
        &mut self,
        case: &Case,
        profile: &Profile,
        _: Option<&str>,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError> {
        let inputs = VerifyInputs::of_case(case, prepared, runs);
        let vm = VmToRun { options: &self.options, inputs: &inputs };
        let (place, work) = self.place(case, prepared, progress)?;
        let reference =
            |_: &mut Progress<'_>| Ok(Some(InTurn { machine: place.machine(&work)?, sample: true }));
        verify_in_turn(profile, vm, reference, progress)
    }
}

impl HostAndVm {
    /// A place with a copy of the folder `prepared` in it, and where that is.
    fn place(
        &self,
        case: &Case,
        prepared: &Path,
        progress: &Progress<'_>,
    ) -> Result<(NativeFolder, PathBuf), ApplicationsError> {
        let place = self.native.place()?;
        let work = place.folder().join("work");
        let mut copy = Command::new("cp");
        copy.args(["-a", "--"]).arg(prepared).arg(&work);
        let what = format!("copying what {} begins with", case.name);
        run_command(copy, &what, COPY_LIMIT, progress.stop)?;
        // What the copy left unwritten is not to be paid for by the application.
        rustix::fs::sync();
        Ok((place, work))
    }
}

/// The longest that a native run is watched.
const LONGEST: Duration = Duration::from_secs(600);

/// What was seen of an application in a run of its own, as it slows it down.
struct RunApart {
    seen: Option<Footprint>,
    /// How much work it was for: its capacity times the time it took, in nanoseconds.
    work: f64,
}

impl RunApart {
    /// Runs a case once on a machine, with its system calls counted if `count` says so.
    fn new(
        case: &Case,
        mut machine: WorkloadMachine,
        count: bool,
        progress: &Progress<'_>,
    ) -> Result<Self, ApplicationsError> {
        let limit_ns = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        let AgentRun { spec, metric, .. } = AgentRun::new(&case.command, case.metric.as_deref(), limit_ns)?;
        let spec = WorkloadSpec { count, ..spec };
        let measured = machine.run(spec, progress);
        machine.end();
        let outcome = measured?.0;
        let capacity = run_capacity(&outcome, metric.as_ref(), "natively")?;
        Ok(Self { work: capacity.value * outcome.elapsed_ns as f64, seen: outcome.footprint })
    }

    /// What `run` gives; nothing, with a remark, where the application cannot be run so.
    fn unless_it_fails(
        what: &str,
        case: &Case,
        progress: &mut Progress<'_>,
        run: impl FnOnce(&Progress<'_>) -> Result<Self, ApplicationsError>,
    ) -> Result<Option<Self>, ApplicationsError> {
        match run(progress) {
            Err(error) if error.is_of_one_application() => {
                progress.remark(&format!("{}: {what}: {error}", case.name));
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Has `add` put what it finds in this run's footprint into the profile's, as many times as belongs to the profile's own work.
    fn add_to(&self, profile: &mut Profile, add: impl FnOnce(&mut Footprint, &Footprint, f64)) {
        let work = profile.capacity().value * profile.elapsed_ns.unwrap_or(0) as f64;
        let times = work / self.work;
        if let (Sourced::Known { value, .. }, Some(seen)) = (&mut profile.footprint, &self.seen)
            && times.is_finite()
        {
            add(value, seen, times);
        }
    }
}

/// Runs a case once in the folder `work` of a place, and gives its profile.
pub(super) fn profile_natively(
    case: &Case,
    (place, work): (&NativeFolder, &Path),
    progress: &Progress<'_>,
) -> Result<Profile, ApplicationsError> {
    if let Some(spec) = own_workload(&case.command) {
        let spec = WorkloadSpec { sample: true, ..spec };
        let mut machine = place.machine(work)?;
        let before_s = kernel_threads_s();
        let measured = machine.run(spec, progress);
        // A kernel thread that ends meanwhile takes its time along.
        let threads_s = (kernel_threads_s() - before_s).max(0.0);
        machine.end();
        let (outcome, host) = measured?;
        let profile = agent_profile(case, run_capacity(&outcome, None, "natively")?, outcome, threads_s)?;
        return Ok(Profile { host_use: Some(host), ..profile });
    }
    let inputs = CommandProfile {
        command: &case.command,
        folder: Some(work),
        metric: case.metric.as_deref(),
        limits: Limits {
            ramp: Duration::ZERO,
            time: LONGEST,
            tracing: false,
            io_needed: true,
            disk: Disk::under(work),
        },
        echo: |_| (),
    };
    let profiled = profile_started(&inputs, Some(place), progress.stop);
    // A profile that a stop cut short is none.
    progress.check()?;
    let mut profiled = profiled?;
    profiled.workers = Sourced::known(case.workers, Source::User);
    profiled.without_contradiction().map_err(|error| ApplicationsError::Measured(error.into()))
}

/// What the agent's own accounts say of a run, during which the kernel's threads computed so long besides.
pub(super) fn agent_profile(
    case: &Case,
    capacity: Capacity,
    outcome: WorkloadOutcome,
    threads_s: f64,
) -> Result<Profile, ApplicationsError> {
    const SILENT: &str = "the agent's accounts do not say";
    let elapsed_ns = outcome.elapsed_ns;
    let seconds = elapsed_ns as f64 / 1e9;
    let percent = |mode: usize| {
        Sourced::known(outcome.own_cpu_ns[mode] as f64 / elapsed_ns as f64 * 100.0, Source::ProcessStat)
    };
    let (user, system) = (percent(0), percent(1));
    let copied = Sourced::known(outcome.bytes as f64 / seconds, Source::Derived);
    let footprint: Sourced<Footprint> = outcome.footprint.map_or_else(
        || Sourced::unavailable("the machine did not say"),
        |footprint| Sourced::known(footprint, Source::PerfEvents),
    );
    let processors =
        std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
    let profile = Profile {
        profile_format: PROFILE_FORMAT,
        name: case.command.join(" "),
        host: None,
        host_use: None,
        elapsed_ns: Some(elapsed_ns),
        devices: Vec::new(),
        io_per_second: Sourced::known(capacity.value, Source::Derived),
        capacity: Some(capacity),
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
        metric: Some(case.metric.clone().unwrap_or_else(|| "io".into())),
        notes: Vec::new(),
    };
    profile.check().map_err(|error| ApplicationsError::Measured(error.into()))?;
    Ok(profile)
}

/// How much of what a command prints is kept, in bytes.
const MOST_OUTPUT: usize = 64 << 10;

/// How a command is watched.
#[derive(Debug, Clone)]
pub struct CommandProfile<'a> {
    /// Its program and arguments.
    pub command: &'a [String],
    /// Where it is run; in this process's folder where there is none.
    pub folder: Option<&'a Path>,
    /// What its capacity is read from, as [`Metric::parse`] takes it.
    pub metric: Option<&'a str>,
    /// For how long it is watched.
    pub limits: Limits,
    /// Given what it prints, as it comes.
    pub echo: fn(&[u8]),
}

/// Runs a command and watches it.
///
/// # Errors
/// It cannot be run, says nothing that the metric could be read from, ends too soon or moves no data.
pub fn profile_command(inputs: &CommandProfile<'_>, stop: &AtomicBool) -> Result<Profile, ApplicationsError> {
    profile_started(inputs, None, stop)
}

/// The same, with as few processors as a place has where there is one. What watches it has all.
fn profile_started(
    inputs: &CommandProfile<'_>,
    place: Option<&NativeFolder>,
    stop: &AtomicBool,
) -> Result<Profile, ApplicationsError> {
    let CommandProfile { command, folder, metric, ref limits, echo } = *inputs;
    let wrong = |why: String| ApplicationsError::Input(format!("--metric: {why}").into());
    let parsed = metric.map(Metric::parse).transpose().map_err(wrong)?;
    let failed =
        |error: io::Error| ApplicationsError::Environment(format!("cannot run a command: {error}").into());
    let (reader, writer) = io::pipe().map_err(failed)?;
    let listener = thread::spawn(move || listen(reader, echo));
    let io_needed = parsed.as_ref().is_none_or(|metric| matches!(metric, Metric::Io));
    let limits = Limits { io_needed, ..limits.clone() };
    let few = place.map(NativeFolder::few_processors).transpose()?;
    let start = move || {
        let started = Application::start(command, folder, Some(Stdio::from(writer)));
        drop(few);
        started
    };
    let before = CpuSample::take().map_err(LabError::from)?;
    let profiled = profile(start, &limits, stop);
    let host_use = before.until(&CpuSample::take().map_err(LabError::from)?);
    // Everything that could still write has been ended.
    let output = listener.join().unwrap_or_default();
    let mut profile = profiled.map_err(profiler_failure)?;
    if let (Some(parsed), Some(text)) = (parsed, metric) {
        let seconds = profile.elapsed_ns.map_or(f64::NAN, |ns| ns as f64 / 1e9);
        let capacity = parsed.read(seconds, Some(profile.rate()), &output);
        profile.capacity = Some(capacity.map_err(|why| ApplicationsError::Target(why.into()))?);
        profile.metric = Some(text.to_owned());
        profile.check().map_err(|error| ApplicationsError::Target(error.into()))?;
    }
    profile.host_use = Some(host_use);
    profile.host = Some(host_facts(folder.unwrap_or(Path::new("."))));
    Ok(profile)
}

/// Whose fault it is that there is no profile.
#[must_use]
pub fn profiler_failure(error: ProfilerError) -> ApplicationsError {
    match &error {
        ProfilerError::Application(ApplicationError::Start { .. } | ApplicationError::NoProcess(_))
        | ProfilerError::TooShort { .. }
        | ProfilerError::NoIo { .. }
        | ProfilerError::Hidden { .. } => ApplicationsError::Target(error.into()),
        _ => ApplicationsError::Measured(error.into()),
    }
}

/// Passes on what a command prints, and gives the end of it.
fn listen(mut reader: impl Read, echo: fn(&[u8])) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        echo(&buffer[..count]);
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * MOST_OUTPUT {
            kept.drain(..MOST_OUTPUT);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
