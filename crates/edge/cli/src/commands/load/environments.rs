//! A load, or the jobs of a plan, in other environments than this process.

use std::time::Duration;

use anyhow::Context;
use clap::ArgMatches;
use virtbench_lab::{Environment, LabError, Machine, TimeLimits, measure};
use virtbench_record::{ClockCheck, HostUse, LoadOutcome};
use virtbench_study::{
    FoundEnvironments, GuestOptions, MadeEnvironments, NamedEnvironment, StudyError, make_target,
};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::measure::verdict;
use super::perform::{self, DEFAULT_SIZE_BYTES, Done};
use super::phases::{is_plain, phases};
use super::repetitions::Repetitions;
use super::spec::{Job, Plan};
use super::{options, report};
use crate::args::LoadArgs;
use crate::commands::grid;
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind, Outcome, lab_kind};
use crate::say::tell;
use crate::{interrupt, progress};

/// What the slowest disk is taken to read in a second where a file is verified, in bytes.
const VERIFIED_PER_SECOND: u64 = 4 << 20;

/// Applies the load, or the jobs of a file one after another, in each environment and prints what came of it.
pub fn execute(args: &LoadArgs, matches: Option<&ArgMatches>) -> Outcome {
    let named = grid::named(&args.environment)?;
    let plan = options::plan(args, matches)?;
    perform::check(&args.spec.export)?;
    let names: Vec<&str> = named.iter().map(|environment| environment.name.as_str()).collect();
    let far = FarJobs::new(&plan, &names)?;
    if !args.shape.json {
        plan.notes.iter().chain(&far.notes).for_each(|note| tell!("note: {note}"));
        plan.ignored.iter().for_each(|remark| tell!("ignored: {remark}"));
    }
    if args.spec.dry_run {
        return Ok(report::print(&plan, args.shape.json)?);
    }
    let mut made = made(&named, far.size_bytes)?;
    let mut done = Vec::new();
    let mut ran = Ok(());
    for environment in &mut made.environments {
        ran = ran.and(perform(args, &far, environment.as_mut(), &mut done));
        if interrupt::requested() {
            break;
        }
    }
    if args.shape.json && !done.is_empty() {
        let notes = plan.notes.into_iter().chain(far.notes).collect();
        report::write_json(
            args.spec.is_given() || done.len() > 1,
            &Plan { jobs: Vec::new(), notes, ..plan },
            &done,
            &[],
        )?;
    }
    ran.and(perform::write(&args.spec.export, &done))
}

/// The environments with their test files; those of this host in the current folder.
fn made(named: &[NamedEnvironment], size_bytes: u64) -> Result<MadeEnvironments, Failure> {
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let found = FoundEnvironments::find(named, &GuestOptions::default(), &mut |what| tell!("{what}"));
    let run_name = format!("load-{}", std::process::id());
    let bar = progress::bar(0, "writing the test file");
    let made = found.and_then(|found| {
        found.make((&folder, &run_name), size_bytes, interrupt::flag(), &mut |_, written, total| {
            bar.set_length(total);
            bar.set_position(written);
        })
    });
    bar.finish_and_clear();
    made.map_err(study_failure)
}

/// Applies the jobs in one environment. What they did stays in `done`, whatever comes after them.
fn perform(
    args: &LoadArgs,
    far: &FarJobs,
    environment: &mut dyn Environment,
    done: &mut Vec<Done>,
) -> Outcome {
    let environment_name = environment.name().to_owned();
    let mut machine = environment.start().map_err(lab_failure)?;
    make_file(machine.as_mut())?;
    let mut ran = Ok(());
    for (job, spec) in &far.loads {
        let mut started = Vec::new();
        let repetitions = Repetitions::measure(args.repeat.rule(), spec, |spec| {
            let (began, outcome, host) = once(machine.as_mut(), spec)?;
            started.push(began);
            Ok((outcome, host))
        })?;
        let started_unix_ns = started.get(repetitions.median_index()).copied().unwrap_or(0);
        let name = match job {
            Some(job) => format!("{environment_name}/{job}"),
            None => environment_name.clone(),
        };
        let one = Done { name: Some(name), repetitions, settled: None, started_unix_ns };
        if !args.shape.json {
            report::write_table(&one)?;
        }
        ran = ran.and(one.repetitions.outcomes().map(verdict).fold(Ok(()), Outcome::and));
        done.push(one);
        // A job after one that failed would measure what that one left.
        if ran.is_err() || interrupt::requested() {
            break;
        }
    }
    machine.shut_down();
    ran
}

/// Has a machine elsewhere write its test file.
fn make_file(machine: &mut dyn Machine) -> Outcome {
    let bar = progress::bar(0, "writing the test file");
    let made = make_target(machine, interrupt::flag(), &mut |written, total| {
        bar.set_length(total);
        bar.set_position(written);
    });
    bar.finish_and_clear();
    made.map_err(|error| match error {
        StudyError::Stopped => interrupt::failure("nothing was measured"),
        error => study_failure(error),
    })
}

/// Measures once; returns when that began, in nanoseconds since 1970, what came of it, and what the machine's processors
/// did meanwhile.
fn once(machine: &mut dyn Machine, spec: &LoadSpec) -> Result<(u64, LoadOutcome, HostUse), Failure> {
    let measured = measure(machine, spec.clone(), limits(spec), interrupt::flag());
    let (began, measured) = measured.map_err(lab_failure)?;
    let mut outcome = measured.outcome;
    outcome.notes.extend(machine.notes());
    if let Some(clock) = measured.clock.filter(ClockCheck::is_suspect) {
        outcome.notes.push(format!(
            "{}: its clock ran {:.1} % off this host's, by a jump or all the time: its times and rates cannot be trusted",
            machine.name(),
            clock.drift_ppm / 1e4
        ));
    }
    Ok((began, outcome, measured.host))
}

/// How long the machine may take. One that verifies reads its whole file afterwards.
fn limits(spec: &LoadSpec) -> TimeLimits {
    let limits = TimeLimits::default();
    let reading = if spec.verify { spec.region_bytes / VERIFIED_PER_SECOND } else { 0 };
    TimeLimits { grace: limits.grace + Duration::from_secs(reading), ..limits }
}

fn lab_failure(error: LabError) -> Failure {
    match error {
        LabError::Stopped => interrupt::failure("nothing was measured"),
        error => Failure::new(lab_kind(&error), error),
    }
}

/// What is applied to the test file.
pub struct FarJobs {
    /// The loads with the names of their jobs, where they have any, in the order in which they run.
    pub loads: Vec<(Option<String>, LoadSpec)>,
    /// How large the test file is, in bytes: as far as any of them reaches, 1 GiB where none says.
    pub size_bytes: u64,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

impl FarJobs {
    /// The jobs of `plan` in the environments of these names.
    ///
    /// # Errors
    /// A job needs others beside it, or more than a test file that is made for it.
    pub fn new(plan: &Plan, environments: &[&str]) -> Result<Self, Failure> {
        if let Some(phase) = phases(plan).into_iter().find(|phase| !is_plain(phase)) {
            let names: Vec<&str> = phase.iter().take(4).filter_map(|(_, job)| job.name.as_deref()).collect();
            return Err(refused(&format!(
                "{} of the file run at the same time or wait for each other, and in an environment jobs run one after \
                 another: keep one of them in a phase (fio: stonewall; diskspd: one target in a TimeSpan)",
                names.join(", ")
            )));
        }
        plan.jobs.iter().try_for_each(check)?;
        let size_bytes = plan.jobs.iter().filter_map(Job::made_bytes).max().unwrap_or(DEFAULT_SIZE_BYTES);
        let loads = plan.jobs.iter().map(|job| Ok((job.name.clone(), on_file(job, size_bytes)?)));
        let loads: Vec<(Option<String>, LoadSpec)> = loads.collect::<Result<_, Failure>>()?;
        if loads.is_empty() {
            return Err(Failure::message(Kind::Other, "there is no load to apply"));
        }
        let note = || {
            let (size, place) = (format_bytes(size_bytes), environments.join(" and in "));
            format!(
                "jobs run on a test file of {size} in {place}, made for them, in place of what the file names"
            )
        };
        let is_of_file = plan.jobs.iter().any(|job| job.name.is_some());
        Ok(Self { loads, size_bytes, notes: is_of_file.then(note).into_iter().collect() })
    }
}

fn refused(why: &str) -> Failure {
    Failure::message(Kind::Usage, format!("--environment: {why}"))
}

/// Refuses what a test file elsewhere cannot give.
fn check(job: &Job) -> Result<(), Failure> {
    let name = job.name.as_deref().unwrap_or("the load");
    if job.schedule.must_exist {
        return Err(refused(&format!(
            "job {name:?} wants a target that exists (allow_file_create=0), and its test file is made for it"
        )));
    }
    Ok(())
}

/// The load on a file of this size; all of it from where the job begins, where it does not say how much.
fn on_file(job: &Job, size_bytes: u64) -> Result<LoadSpec, Failure> {
    let rest_bytes = size_bytes.saturating_sub(job.load.start_bytes);
    let spec = LoadSpec { region_bytes: job.size_bytes.unwrap_or(rest_bytes), ..job.load.clone() };
    spec.validate().map_err(|error| {
        let name = job.name.as_deref().unwrap_or("the load");
        Failure::message(Kind::Usage, format!("job {name:?} on a test file: {error}"))
    })?;
    Ok(spec)
}
