//! A load in other environments than this process.

use std::time::Duration;

use anyhow::Context;
use clap::ArgMatches;
use virtbench_lab::{Environment, LabError, Machine, TimeLimits, measure};
use virtbench_record::{ClockCheck, HostUse, LoadOutcome};
use virtbench_study::{
    FoundEnvironments, GuestOptions, MadeEnvironments, NamedEnvironment, StudyError, make_target,
};
use virtbench_workload::LoadSpec;

use super::far_jobs::FarJobs;
use super::job::Plan;
use super::measure::verdict;
use super::perform::Done;
use super::repetitions::Repetitions;
use super::{export, options, plan, report};
use crate::args::LoadArgs;
use crate::commands::environments;
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Outcome};
use crate::lab_failure::lab_kind;
use crate::say::tell;
use crate::{interrupt, progress};

/// What the slowest disk is taken to read in a second where a file is verified, in bytes.
const VERIFIED_PER_SECOND: u64 = 4 << 20;

/// Applies the load, or the jobs of a file one after another, in each environment and prints what came of it.
pub fn execute(args: &LoadArgs, matches: Option<&ArgMatches>) -> Outcome {
    let named = environments::named(&args.environment)?;
    let plan = options::plan(args, matches)?;
    export::check(&args.spec.export)?;
    let names: Vec<&str> = named.iter().map(|environment| environment.name.as_str()).collect();
    let far = FarJobs::new(&plan, &names)?;
    if !args.shape.json {
        plan.notes.iter().chain(&far.notes).for_each(|note| tell!("note: {note}"));
        plan.ignored.iter().for_each(|remark| tell!("ignored: {remark}"));
    }
    if args.spec.dry_run {
        return Ok(plan::print(&plan, args.shape.json)?);
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
    ran.and(export::write(&args.spec.export, &done))
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
