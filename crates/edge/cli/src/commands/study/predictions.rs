//! `virtbench study predictions`: applications profiled natively, predicted, and then run in a VM.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use virtbench_lab::host_facts;
use virtbench_model::Prediction;
use virtbench_model::predict::trials::Trial;
use virtbench_model::predict::{Inputs, Rounding, predict};
use virtbench_profiler::{Limits, kernel_threads_s};
use virtbench_record::{
    Band, Capacity, Costs, Figure, Footprint, JobOutcome, PROFILE_FORMAT, Profile, Source, WorkloadOutcome,
};
use virtbench_report::{trials_csv, trials_html, trials_markdown, trials_takeaway};
use virtbench_workload::WorkloadSpec;

use crate::args::predictions::PredictionsArgs;
use crate::args::there::{ThereArgs, VerifyArgs};
use crate::commands::predict::verify::{own_workload, verify};
use crate::commands::{costs, profile, references};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::middle::middle;
use crate::native_place::NativeSide;
use crate::say::tell;
use crate::there::There;

/// The longest that a native run is watched.
const LONGEST: Duration = Duration::from_secs(600);

/// The file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// An application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// What is run, in a folder of its own.
    command: Vec<String>,
    /// What its throughput is read from; a workload of virtbench's own needs none.
    metric: Option<String>,
    workers: u32,
    /// Files and folders that it needs in the VM besides its libraries.
    #[serde(default)]
    with: Vec<PathBuf>,
    /// A shell script that makes what it begins with, in an empty folder.
    prepare: Option<String>,
}

/// Runs all trials that are missing, and writes the page.
pub fn execute(args: &PredictionsArgs) -> Outcome {
    let text = fs::read_to_string(&args.cases)
        .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", args.cases.display())))?;
    let cases: Cases = toml::from_str(&text)
        .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", args.cases.display())))?;
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let out = fs::canonicalize(&args.out)?;
    let mut there = args.there.clone();
    there.target_dir.get_or_insert_with(|| out.clone());
    let side = NativeSide::new(&there)?;
    let costs = costs_of(args, &side, &there, &out)?;
    let mut trials = read_trials(&out.join("trials.jsonl"))?;
    if args.again {
        for trial in &mut trials {
            let kept = out.join("profiles").join(format!("{}-{}.json", trial.case, trial.trial));
            let costs = costs_then(&out, trial.trial)?.unwrap_or_else(|| costs.clone());
            let again = predicted(args, &profile::read(&kept)?, trial.trial, &costs)?;
            *trial = Trial {
                machine_percent: trial.machine_percent,
                reference_percent: trial.reference_percent,
                ..Trial::new(&trial.case, trial.trial, &again, trial.truth)
            };
        }
        return finish(&out, &trials, &costs, &cases);
    }
    for trial in 1..=args.trials {
        let wanted = |case: &&Case| {
            let asked = args.only.is_empty() || args.only.contains(&case.name);
            asked && !trials.iter().any(|done| done.case == case.name && done.trial == trial)
        };
        let missing: Vec<&Case> = cases.case.iter().filter(wanted).collect();
        if missing.is_empty() {
            continue;
        }
        let costs = costs_now(&side, &there, &costs, trial, &out)?;
        // All of the native side first: it changes within minutes, and was looked at just now.
        for case in &missing {
            proceed()?;
            if let Err(failure) = look(args, &side, case, trial, &out) {
                tell!("{} {trial}: {failure:#}", case.name);
            }
        }
        for case in &missing {
            proceed()?;
            match one(args, &there, case, trial, &costs, &out) {
                Ok(done) => {
                    tell!(
                        "{} {trial}: native {:.1}, predicted {:.1}, measured {:.1} {} ({:+.0} %)",
                        done.case,
                        done.reference,
                        done.predicted,
                        done.truth,
                        done.capacity_name,
                        done.error_percent()
                    );
                    append(&out.join("trials.jsonl"), &done)?;
                    trials.push(done);
                }
                // The others are worth having all the same; a case that fails is seen to be missing.
                Err(failure) => tell!("{} {trial}: {failure:#}", case.name),
            }
        }
    }
    finish(&out, &trials, &costs, &cases)
}

fn costs_of(
    args: &PredictionsArgs,
    side: &NativeSide,
    there: &ThereArgs,
    out: &Path,
) -> Result<Costs, Failure> {
    let path = args.costs.clone().unwrap_or_else(|| out.join("costs.json"));
    if path.exists() {
        return costs::read(&path);
    }
    tell!("measuring what work costs natively and in a VM");
    let measured = costs::measure(there, side, args.vcpus)?;
    costs::write(&path, &measured)?;
    Ok(measured)
}

/// The costs with references as they are natively at this trial, kept beside the others.
fn costs_now(
    side: &NativeSide,
    there: &ThereArgs,
    costs: &Costs,
    trial: u32,
    out: &Path,
) -> Result<Costs, Failure> {
    if let Some(known) = costs_then(out, trial)? {
        return Ok(known);
    }
    let mut now = costs.clone();
    references::renew(there, side, &mut now.references)?;
    costs::write(&costs_path(out, trial), &now)?;
    Ok(now)
}

/// Those of a trial, where there are any.
fn costs_then(out: &Path, trial: u32) -> Result<Option<Costs>, Failure> {
    let path = costs_path(out, trial);
    path.exists().then(|| costs::read(&path)).transpose()
}

fn costs_path(out: &Path, trial: u32) -> PathBuf {
    out.join(format!("costs-{trial}.json"))
}

fn profile_path(out: &Path, case: &Case, trial: u32) -> PathBuf {
    out.join("profiles").join(format!("{}-{trial}.json", case.name))
}

fn proceed() -> Outcome {
    if interrupt::requested() {
        return Err(interrupt::failure("what was tried is kept; run it again for the rest"));
    }
    Ok(())
}

/// The native side of a trial: the profile of the run in the middle.
fn look(args: &PredictionsArgs, side: &NativeSide, case: &Case, trial: u32, out: &Path) -> Outcome {
    let path = profile_path(out, case, trial);
    if path.exists() {
        return Ok(());
    }
    // Prepared once, copied for each trial and onto each VM's disk.
    let prepared = out.join("prepared").join(&case.name);
    if !prepared.exists() {
        fs::create_dir_all(&prepared)?;
        if let Some(script) = &case.prepare
            && let Err(failure) = shell(script, &prepared)
        {
            fs::remove_dir_all(&prepared)?;
            return Err(failure);
        }
    }
    let place = side.place()?;
    let work = place.folder().join("work");
    shell(&format!("cp -a '{}' '{}'", prepared.display(), work.display()), out)?;
    shell("sync", out)?;
    let profiles: Result<Vec<Profile>, Failure> = (0..args.runs).map(|_| native(case, &work)).collect();
    drop(place);
    let profile = middle(profiles?, |profile| profile.capacity().value)
        .ok_or_else(|| Failure::message(Kind::Usage, "--runs: at least 1"))?;
    fs::create_dir_all(out.join("profiles"))?;
    Ok(fs::write(path, serde_json::to_string_pretty(&profile)? + "\n")?)
}

fn one(
    args: &PredictionsArgs,
    there: &ThereArgs,
    case: &Case,
    trial: u32,
    costs: &Costs,
    out: &Path,
) -> Result<Trial, Failure> {
    let profile = profile::read(&profile_path(out, case, trial))?;
    let prepared = out.join("prepared").join(&case.name);
    // Before anything is known of the truth.
    let prediction = predicted(args, &profile, trial, costs)?;
    let verify_args = VerifyArgs { verify: true, with: case.with.clone(), disk_from: Some(prepared) };
    let verified = verify(&profile, there, &verify_args, args.vcpus, args.runs)?;
    let percent = |figure: &Figure<f64>| figure.value().copied();
    Ok(Trial {
        machine_percent: verified.machine_percent,
        reference_percent: percent(&profile.cpu_user_percent)
            .zip(percent(&profile.cpu_system_percent))
            .map(|(user, system)| [user, system]),
        ..Trial::new(&case.name, trial, &prediction, verified.capacity)
    })
}

fn predicted(
    args: &PredictionsArgs,
    profile: &Profile,
    trial: u32,
    costs: &Costs,
) -> Result<Prediction, Failure> {
    let inputs = Inputs {
        profile,
        surface: None,
        runs: None,
        costs: Some(costs),
        compute: None,
        subject_processors: Some(args.vcpus),
        method: args.method.method(),
        rounding: Rounding::Exact,
        seed: u64::from(trial),
    };
    predict(&inputs).map_err(|error| Failure::new(Kind::Other, error))
}

/// The application on this host: a command from outside, a workload of our own by the same agent that runs
/// it in the VM.
fn native(case: &Case, work: &Path) -> Result<Profile, Failure> {
    if let Some(spec) = own_workload(&case.command) {
        let spec = WorkloadSpec { sample: true, ..spec };
        let mut machine = There::native(work.to_owned())?;
        let before_s = kernel_threads_s();
        let measured = machine.run(spec);
        // A kernel thread that ends meanwhile takes its time along.
        let threads_s = (kernel_threads_s() - before_s).max(0.0);
        machine.end();
        return own_profile(case, measured?.outcome, threads_s);
    }
    let before = std::env::current_dir()?;
    std::env::set_current_dir(work)?;
    let limits = Limits { ramp: Duration::ZERO, time: LONGEST, tracing: false };
    let profiled = profile::profile_command(&case.command, case.metric.as_deref(), limits);
    std::env::set_current_dir(before)?;
    let mut profiled = profiled?;
    profiled.workers = Figure::known(case.workers, Source::User);
    // What the kernel writes back meanwhile overlaps with everything: its response times are not what a worker waits for.
    if profiled.check().is_err() {
        profiled.latency_ns =
            Figure::unavailable("the kernel's writing back overlaps with the application's operations");
    }
    profiled.check().map_err(|error| Failure::new(Kind::Other, error))?;
    Ok(profiled)
}

fn no_footprint() -> Figure<Footprint> {
    Figure::unavailable("the machine did not say")
}

/// What the agent's own accounts say of a workload.
fn own_profile(case: &Case, outcome: WorkloadOutcome, threads_s: f64) -> Result<Profile, Failure> {
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    let percent = |mode: usize| {
        Figure::known(
            outcome.own_cpu_ns[mode] as f64 / outcome.elapsed_ns as f64 * 100.0,
            Source::ProcessStat,
        )
    };
    let no = || Figure::unavailable("the agent's accounts do not say");
    let (user, system) = (percent(0), percent(1));
    let copied = Figure::known(outcome.bytes as f64 / seconds, Source::Derived);
    let elapsed_ns = outcome.elapsed_ns;
    let outcome_footprint = outcome
        .footprint
        .clone()
        .map_or_else(no_footprint, |footprint| Figure::known(footprint, Source::PerfEvents));
    let throughput = JobOutcome::Workload(Box::new(outcome)).throughput();
    let value =
        throughput.ok_or_else(|| Failure::message(Kind::Measured, "the workload had no throughput"))?;
    let processors =
        std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
    let profile = Profile {
        profile_format: PROFILE_FORMAT,
        name: case.command.join(" "),
        host: None,
        elapsed_ns: Some(elapsed_ns),
        devices: Vec::new(),
        capacity: Some(Capacity { name: "operations/s".into(), value }),
        io_per_second: Figure::known(value, Source::Derived),
        reads_per_second: no(),
        writes_per_second: no(),
        bytes_per_second: no(),
        sizes: Figure::unavailable("the agent's accounts do not say"),
        random: Figure::<Band>::unavailable("the agent's accounts do not say"),
        workers: Figure::known(case.workers, Source::User),
        outstanding_mean: no(),
        outstanding_peak_per_worker: Figure::unavailable("the agent's accounts do not say"),
        latency_ns: no(),
        think_ns: no(),
        cpu_user_percent: user,
        cpu_system_percent: system,
        cpu_kernel_threads_percent: Figure::known(100.0 * threads_s / seconds, Source::ProcessStat),
        copied_bytes_per_second: copied,
        footprint: outcome_footprint,
        processors: Figure::known(processors, Source::ProcessStat),
        command: case.command.clone(),
        metric: Some("io".into()),
        notes: Vec::new(),
    };
    profile.check().map_err(|error| Failure::new(Kind::Other, error))?;
    Ok(profile)
}

fn shell(script: &str, folder: &Path) -> Outcome {
    let output = Command::new("sh").args(["-ec", script]).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::message(Kind::Target, format!("{script:?} in {}: {}", folder.display(), said.trim())))
}

fn read_trials(path: &Path) -> Result<Vec<Trial>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    // What a kill left half-written is no trial.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn append(path: &Path, trial: &Trial) -> Outcome {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{}", serde_json::to_string(trial)?)?;
    Ok(())
}

fn finish(out: &Path, trials: &[Trial], costs: &Costs, cases: &Cases) -> Outcome {
    let host = host_facts(out);
    let place = format!(
        "{}, {} processors, {}; VM: {} vCPUs, {}, {}",
        host.cpu, host.processors, host.kernel, costs.vcpus, costs.accelerator, costs.adapter
    );
    let mut cautions = Vec::new();
    if costs.accelerator == "tcg" {
        cautions.push(
            "The VM ran under TCG, software emulation: this says nothing of virtualization.".to_owned(),
        );
    }
    let missing: Vec<&str> = cases
        .case
        .iter()
        .map(|case| case.name.as_str())
        .filter(|name| !trials.iter().any(|trial| trial.case == *name))
        .collect();
    if !missing.is_empty() {
        cautions.push(format!("Without any trial: {}.", missing.join(", ")));
    }
    fs::write(out.join("results.csv"), trials_csv(trials))?;
    fs::write(out.join("results.md"), trials_markdown(trials))?;
    fs::write(out.join("report.html"), trials_html(trials, &place, cautions, env!("CARGO_PKG_VERSION")))?;
    let takeaway = trials_takeaway(trials);
    let mut stdout = io::stdout().lock();
    for sentence in std::iter::once(&takeaway.headline).chain(&takeaway.details) {
        writeln!(stdout, "{sentence}")?;
    }
    writeln!(stdout, "{}", out.join("report.html").display())?;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::message(Kind::Measured, format!("no trial of {}", missing.join(", "))))
    }
}
